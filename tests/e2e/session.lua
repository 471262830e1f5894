-- A user's session in Neovim, from opening a PyTorch file to the quick fix of a planted mistake. Writes what was seen.
local folder, seen = vim.env.T2J_FOLDER, {}
local WAIT = tonumber(vim.env.T2J_WAIT or "60000")

local function finish(answer)
  local file = assert(io.open(vim.env.T2J_RESULT, "w"))
  file:write(vim.fn.json_encode(answer))
  file:close()
  vim.cmd("qall!")
end

local function wait(what, condition)
  seen.step = what
  if not vim.wait(WAIT, condition, 20) then
    error("waited in vain for " .. what)
  end
end

-- The menus that a user would see: each is answered by the entry that starts with the wanted text.
local wanted, offered = nil, {}
vim.ui.select = function(items, _, choose)
  offered = {}
  local chosen
  for i, item in ipairs(items) do
    local title = (item.action or item[2]).title -- Neovim 0.10 and later, or before
    table.insert(offered, title)
    chosen = chosen or (vim.startswith(title, wanted) and i or nil)
  end
  choose(items[chosen], chosen)
end

local hover_text
local show_hover = vim.lsp.handlers["textDocument/hover"]
vim.lsp.handlers["textDocument/hover"] = function(err, result, ...)
  hover_text = result and result.contents.value or "nothing"
  return show_hover(err, result, ...)
end

-- The page's handler, and what it was given.
local checked = {}
local show_checked = vim.lsp.handlers["t2j/checked"]
vim.lsp.handlers["t2j/checked"] = function(problem, params, ...)
  table.insert(checked, params)
  return show_checked(problem, params, ...)
end

local said = {}
vim.notify = function(text)
  table.insert(said, text)
end

local function said_like(pattern)
  for _, text in ipairs(said) do
    if text:find(pattern) then
      return text
    end
  end
end

local function server_of(buffer)
  local all = vim.lsp.get_clients and vim.lsp.get_clients({ bufnr = buffer }) or vim.lsp.buf_get_clients(buffer)
  for id, client in pairs(all) do
    if client.name == "t2j" and client.initialized then
      return client.id or id
    end
  end
end

local function choose(line, column, title)
  vim.api.nvim_win_set_cursor(0, { line, column })
  wanted = title
  vim.lsp.buf.code_action()
end

local function line_with(buffer, text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, true)) do
    if line:find(text, 1, true) then
      return number, line
    end
  end
end

local function differences(buffer)
  return vim.tbl_filter(function(d)
    return d.message:find("differs from PyTorch", 1, true) ~= nil
  end, vim.diagnostic.get(buffer))
end

local function session()
  vim.cmd("edit " .. folder .. "/net.py")
  local source = vim.api.nvim_get_current_buf()
  wait("the server", function() return server_of(source) ~= nil end)
  local client = server_of(source)

  -- Nothing of this folder runs until the user says so.
  vim.cmd("T2j check")
  wait("the refusal", function() return said_like("not trusted") ~= nil end)
  seen.refused = said_like("not trusted")
  vim.cmd("T2jTrust")
  seen.trusted = vim.fn.readfile(vim.fn.stdpath("config") .. "/t2j-trusted")

  local number, line = line_with(source, "F.gelu")
  local column = line:find("gelu", 1, true)
  wait("a hover with this call", function()
    vim.api.nvim_win_set_cursor(0, { number, column })
    hover_text = nil
    vim.lsp.buf.hover()
    vim.wait(5000, function() return hover_text ~= nil end, 10)
    return hover_text ~= nil and hover_text:find("self.fc(x)", 1, true) ~= nil
  end)
  seen.hover = hover_text

  -- An expression in place, and back.
  choose(number, column, "Rewrite torch.nn.functional.gelu")
  wait("the converted expression", function() return line_with(source, "jax.nn.gelu") ~= nil end)
  seen.expression = select(2, line_with(source, "jax.nn.gelu"))
  seen.offered = offered
  vim.cmd("undo")
  wait("the undone edit", function() return line_with(source, "jax.nn.gelu") == nil end)

  -- The file, as a new file beside it.
  choose(1, 0, "Convert file to JAX")
  local target = folder .. "/net_jax.py"
  wait("the converted file", function()
    return vim.fn.bufexists(target) == 1 and #vim.fn.getbufline(vim.fn.bufnr(target), 1, "$") > 5
  end)
  vim.cmd("edit " .. target)
  vim.cmd("write!")
  local converted = vim.api.nvim_get_current_buf()
  wait("the server in the new file", function() return server_of(converted) == client end)
  wait("the verdict", function() return #checked > 0 and checked[#checked].verdict == "equivalent" end)
  seen.first = checked[#checked].verdict

  -- A mistake, planted as a user types it.
  local at, right = line_with(converted, "jax.nn.gelu")
  local wrong = right:gsub(", approximate=False", "")
  vim.api.nvim_buf_set_lines(converted, at - 1, at, true, { wrong })
  wait("the mistake's diagnostic", function() return #differences(converted) > 0 end)
  seen.planted = at
  seen.found = differences(converted)[1].lnum + 1
  seen.there = differences(source)[1].lnum + 1
  seen.message = differences(converted)[1].message
  vim.cmd("T2j explainDifference Net")
  wait("the values of both sides", function() return said_like("gelu") ~= nil end)
  seen.explained = said_like("gelu")

  choose(at, 4, "Write this as the rules convert it")
  wait("the quick fix", function() return select(2, line_with(converted, "jax.nn.gelu")) == right end)
  wait("the diagnostics to go", function() return #differences(converted) == 0 and #differences(source) == 0 end)
  wait("the second verdict", function() return checked[#checked].verdict == "equivalent" end)
  seen.last = checked[#checked].verdict

  vim.cmd("T2j pauseChecks")
  wait("the pause", function() return vim.g.t2j_status:find("paused") ~= nil end)
  seen.paused = vim.g.t2j_status

  vim.lsp.stop_client(client)
  wait("the server's end", function() return vim.lsp.get_client_by_id(client) == nil end)
  seen.ended = true
end

local good, problem = xpcall(session, debug.traceback)
if not good then
  seen.error = problem
  seen.offered = offered
  seen.checked = checked[#checked] and checked[#checked].verdict or "never"
end
finish(seen)
