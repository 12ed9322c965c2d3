-- Fabric Almanac: runs srun with its tasks placed, in jobs that opt in. Written by `almanac slurm install`.
--
-- A job opts in with `--comment=almanac:APPLICATION`, or `--comment=almanac` for the name of the program. sbatch
-- passes it on to the srun of its script as ALMANAC_COMMENT; the comment of an srun is stronger. Whatever fails,
-- srun runs as it was given, and one line says why. In a script of a site's own: dofile("/etc/slurm/almanac.lua").

local ALMANAC, SECONDS = "almanac", 5
local LIMIT = SECONDS + 5 -- for the whole program; then it is ended
local VARIABLE = "ALMANAC_COMMENT"
local PASSED = { "ntasks", "nodes", "ntasks-per-node", "distribution", "nodelist", "exclude", "relative" }

local before_defaults, before_submit, after_submit =
    slurm_cli_setup_defaults, slurm_cli_pre_submit, slurm_cli_post_submit

local function say(text)
    io.stderr:write("almanac: ", text, "\n")
end

local function quoted(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- Return the first word of a comment if it opts in, and the application; "" is that of the program's name.
local function opted_in(comment)
    local word = (comment or ""):match("^[^%s,;]*")
    if word == "almanac" then
        return word, ""
    end
    local application = word:match("^almanac:([%w_+][%w._+-]*)$")
    return application and word, application
end

-- Return the options of srun that decide about hosts and tasks and were given, or came from the job.
local function given(options)
    local found, all = {}, slurm.json_cli_options(options)
    for _, name in ipairs(PASSED) do
        found[name] = all:match('[{,]"' .. name:gsub("%-", "%%-") .. '":"([^"]*)"')
    end
    return found
end

-- Return true if a step takes all hosts and tasks of its job; else other steps may run beside it.
local function takes_all(options)
    local tasks, hosts = tonumber(os.getenv("SLURM_NTASKS")), tonumber(os.getenv("SLURM_JOB_NUM_NODES"))
    local own_tasks, own_hosts = tonumber(options["ntasks"]), tonumber(options["nodes"])
    return not (tasks and own_tasks and own_tasks < tasks) and not (hosts and own_hosts and own_hosts < hosts)
end

-- Return true if srun's own words have --nodes, which Slurm 24.11 refuses beside an order.
local function names_nodes(options)
    local words, file = {}, io.open("/proc/self/cmdline")
    if not file then
        return false
    end
    for word in file:read("*a"):gmatch("([^%z]*)%z") do
        table.insert(words, word)
    end
    file:close()
    for place = 2, #words - #options["argv"] do
        if words[place]:match("^%-N") or words[place]:match("^%-%-nodes$") or words[place]:match("^%-%-nodes=") then
            return true
        end
    end
    return false
end

-- Run almanac and return whether it was interrupted, and the lines it printed.
local function ask(application, wanted, program)
    local words = { "ALMANAC_COMMENT= timeout --foreground -k 1", tostring(LIMIT), quoted(ALMANAC), "run --dry-run" }
    table.insert(words, "--no-measure --seconds " .. SECONDS)
    if application ~= "" then
        table.insert(words, "--name " .. quoted(application))
    end
    table.insert(words, "srun")
    for _, name in ipairs(PASSED) do
        if wanted[name] then
            table.insert(words, quoted("--" .. name .. "=" .. wanted[name]))
        end
    end
    table.insert(words, quoted(program))
    local path = os.tmpname() -- no pipe: a process that goes on in the background could keep it open
    local first, how, code = os.execute(table.concat(words, " ") .. " >" .. quoted(path) .. " 2>&1 </dev/null")
    if type(first) == "number" then -- Lua 5.1: as of wait(2)
        how, code = first % 128 == 0 and "exit" or "signal", first % 128 == 0 and first / 256 or first % 128
    end
    local lines = {}
    for line in io.lines(path) do
        table.insert(lines, line)
    end
    os.remove(path)
    if how == "exit" and (code == 124 or code == 137) then
        lines = { "no answer within " .. LIMIT .. " s" }
    end
    return (how == "signal" and code == 2) or (how == "exit" and code == 130), lines
end

-- Return the number of lines of a file, or nil if it cannot be read.
local function length(path)
    local file = io.open(path)
    if not file then
        return nil
    end
    local count = 0
    for _ in file:lines() do
        count = count + 1
    end
    file:close()
    return count
end

-- Change the options of srun; return why not, as a sentence, or false if the user interrupted.
local function place(options, application, own)
    if not os.getenv("SLURM_JOB_ID") then
        return "srun runs outside of a job: its hosts are not known yet"
    elseif os.getenv("SLURM_HET_SIZE") then
        return "the job is heterogeneous"
    end
    local wanted = given(options)
    if not own and not takes_all(wanted) then
        return "the step takes a part of its job; add --comment=almanac to srun to place it"
    end
    if names_nodes(options) then
        return "leave out --nodes of srun: Slurm takes no order with it"
    end
    local interrupted, lines = ask(application, wanted, options["argv"][1] or "")
    if interrupted then
        return false
    end
    for _, line in ipairs(lines) do
        local path, tasks = line:match("^SLURM_HOSTFILE='?(/[^']-)'? srun %-%-ntasks=(%d+) ")
        if path and length(path) == tonumber(tasks) then
            options["ntasks"], options["nodelist"], options["distribution"] = tasks, path, "arbitrary"
            return nil
        end
    end
    for _, line in ipairs(lines) do
        if not line:match("^srun ") and line:match("%S") then
            return (line:gsub("^not placed: ", ""))
        end
    end
    return "almanac found no order"
end

-- Let the srun commands of a batch script know that the job opted in.
local function pass_on(options, word)
    local export = options["export"] or "ALL"
    if export == "NONE" or export == "NIL" then
        return say("not placed: with --export=" .. export .. " the script itself must export " .. VARIABLE .. "=" .. word)
    end
    options["export"] = export .. "," .. VARIABLE .. "=" .. word
end

-- Return slurm.ERROR only if the user interrupted.
local function submit(options)
    local kind, comment = options["type"], options["comment"] or ""
    local own = comment ~= ""
    if kind == "srun" and not own then
        comment = os.getenv(VARIABLE)
    end
    local word, application = opted_in(comment)
    if not word then
        return
    elseif kind == "sbatch" then
        pass_on(options, word)
    elseif kind == "salloc" then
        say("to place srun in this allocation: export " .. VARIABLE .. "=" .. word)
    elseif kind == "srun" and not (os.getenv("SLURM_HOSTFILE") and options["distribution"] == "arbitrary") then
        local reason = place(options, application, own)
        if reason then
            say("not placed: " .. reason)
        end
        return reason == false and slurm.ERROR or nil
    end
end

function slurm_cli_setup_defaults(options, early)
    return before_defaults and before_defaults(options, early) or slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
    local code = before_submit and before_submit(options, offset) or slurm.SUCCESS
    if code ~= slurm.SUCCESS then
        return code
    end
    local good, result = pcall(submit, options)
    if not good then
        say("not placed: " .. tostring(result))
        return slurm.SUCCESS
    end
    return result or slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
    return after_submit and after_submit(offset, job, step) or slurm.SUCCESS
end

return slurm.SUCCESS
