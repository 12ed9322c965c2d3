/* Exchange messages step by step, and print the seconds of each step.
 *
 *     exchange halo ROWS BYTES STEPS        with the neighbours in a grid of ROWS rows, without wrapping round
 *     exchange all-to-all GROUPS BYTES STEPS    within each group; rank R is in group R mod GROUPS
 *
 * BYTES is the size of a message. A step before the first one opens the connections and is not printed.
 * Output: "rank R host H" for every rank, then "step N S" with the seconds of the slowest rank.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void halo(int rank, int rows, int columns, char *from, char *to, int bytes)
{
    MPI_Request request[8];
    int row = rank / columns, column = rank % columns, number = 0;
    const int away[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    for (int way = 0; way < 4; way++) {
        int other_row = row + away[way][0], other_column = column + away[way][1];
        if (other_row < 0 || other_row >= rows || other_column < 0 || other_column >= columns)
            continue;
        int other = other_row * columns + other_column;
        MPI_Irecv(to + (size_t)way * bytes, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &request[number++]);
        MPI_Isend(from + (size_t)way * bytes, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &request[number++]);
    }
    MPI_Waitall(number, request, MPI_STATUSES_IGNORE);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int grid = !strcmp(words[1], "halo"), parts = atoi(words[2]), bytes = atoi(words[3]), steps = atoi(words[4]);
    if (parts < 1 || ranks % parts)
        MPI_Abort(MPI_COMM_WORLD, 2);
    size_t room = (size_t)bytes * (grid ? 4 : ranks / parts);
    char *from = calloc(room, 1), *to = calloc(room, 1), host[MPI_MAX_PROCESSOR_NAME] = "";
    char *all = calloc(ranks, sizeof host);
    int length;
    MPI_Get_processor_name(host, &length);
    MPI_Gather(host, sizeof host, MPI_CHAR, all, sizeof host, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int other = 0; rank == 0 && other < ranks; other++)
        printf("rank %d host %s\n", other, all + other * sizeof host);
    MPI_Comm group;
    MPI_Comm_split(MPI_COMM_WORLD, rank % parts, rank, &group);
    for (int step = 0; step <= steps; step++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        if (grid)
            halo(rank, parts, ranks / parts, from, to, bytes);
        else
            MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, group);
        double own = MPI_Wtime() - begin, longest;
        MPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0 && step > 0)
            printf("step %d %.6f\n", step, longest);
    }
    MPI_Finalize();
    return 0;
}
