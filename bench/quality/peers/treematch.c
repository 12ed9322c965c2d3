/* Run TreeMatch: treematch GRAPH TREE ANSWER.
 *
 * GRAPH is a Metis graph with edge weights, TREE a "tleaf" line as Scotch reads it with as many leaves as the
 * graph has vertices, and ANSWER gets the leaf of each vertex, one per line. The docstring of
 * bench/quality/peers/__init__.py says how to build it.
 */
#include <stdio.h>
#include <stdlib.h>
#include "tm_mapping.h"
#include "tm_tree.h"
#include "treematch.h"

static void fail(const char *why, const char *what)
{
    fprintf(stderr, "%s: %s\n", why, what);
    exit(1);
}

static tm_affinity_mat_t *read_graph(const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t space = 0;
    long vertices, edges, format;

    if (!file)
        fail("cannot open", path);
    if (getline(&line, &space, file) < 0 || sscanf(line, "%ld %ld %ld", &vertices, &edges, &format) != 3)
        fail("no Metis graph with edge weights", path);
    double **matrix = malloc(vertices * sizeof *matrix);
    for (long vertex = 0; vertex < vertices; vertex++) {
        matrix[vertex] = calloc(vertices, sizeof **matrix);
        if (getline(&line, &space, file) < 0)
            fail("too few lines", path);
        char *rest = line, *end;
        for (;;) {
            long other = strtol(rest, &end, 10);
            if (end == rest)
                break;
            if (other < 1 || other > vertices)
                fail("no such vertex", rest);
            matrix[vertex][other - 1] = strtod(end, &rest);
        }
    }
    free(line);
    fclose(file);
    return tm_build_affinity_mat(matrix, vertices);
}

int main(int count, char **argument)
{
    if (count != 4)
        fail("usage", "treematch GRAPH TREE ANSWER");
    tm_set_verbose_level(CRITICAL);
    tm_set_max_nb_threads(1);
    tm_affinity_mat_t *traffic = read_graph(argument[1]);
    tm_topology_t *tree = tm_load_topology(argument[2], TM_FILE_TYPE_TGT);
    tm_optimize_topology(&tree);
    tm_tree_t *grouped = tm_build_tree_from_topology(tree, traffic, NULL, NULL);
    tm_solution_t *found = tm_compute_mapping(tree, grouped);
    FILE *answer = fopen(argument[3], "w");
    if (!answer)
        fail("cannot write", argument[3]);
    for (int vertex = 0; vertex < traffic->order; vertex++)
        fprintf(answer, "%d\n", found->sigma[vertex]);
    if (fclose(answer))
        fail("cannot write", argument[3]);
    return 0;
}
