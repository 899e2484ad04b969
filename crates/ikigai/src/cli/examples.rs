//! The examples at the end of the help of commands.

pub(super) const PROGRAM: &str = "\
Examples:
  ikigai                                         Start in the current directory
  ikigai -c                                      Continue the latest session
  ikigai run 'fix the failing test'              Run one task and print the answer
  ikigai run -c 'now commit it'                  Continue the latest session with a task
  ikigai tour                                    Take a tour; needs no key
  ikigai tool grep '{\"pattern\":\"TODO\"}'          Run one tool call and print its JSON
  ikigai mail send 1/ 'please review main.rs'    Send mail to an agent
  ikigai config                                  Show all settings and their sources

Each directory has its own sessions. Commands act on the latest one, as its agent 0/
unless --agent selects another.

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.";

pub(super) const RUN: &str = "\
Examples:
  ikigai run 'what does this project do?'
  git diff | ikigai run - > review.md
  ikigai run --json --timeout 600 'fix the failing test'

Each run starts a new session unless you pass -c or --session. The answer goes to stdout, everything
else to stderr.";

pub(super) const TOOL: &str = "\
Examples:
  ikigai tool file_read '{\"path\":\"README.md\",\"limit\":5}'
  ikigai tool bash '{\"command\":\"cargo test\",\"timeout\":600}'
  echo '{\"pattern\":\"**/*.rs\"}' | ikigai tool glob -

The exit code is 0 whenever a result was printed, even if it reports a failure.";

pub(super) const UNDO: &str = "\
Examples:
  ikigai undo --list      List what can be undone, latest first
  ikigai undo             Undo the latest; run it again for the one before
  ikigai undo --redo      Redo the last undo

Undoes the changes that file_write and file_edit made because of your message, by all agents that
worked on it. Files that have changed since are left alone and listed. Commands are not undone, and
files over 10 MB are not kept.";

pub(super) const USAGE: &str = "\
Examples:
  ikigai usage                    Show what each of your messages cost, over all agents
  ikigai usage --by day           Show what was spent on each day, in all sessions
  ikigai usage --by model --json  Print an array for scripts

Prices come from your configuration or a built-in table. Requests that ended before their usage was
reported, by an interrupt or a crash, count as unreported.";

pub(super) const AUTH: &str = "\
Examples:
  ikigai auth add anthropic            Ask for a key, try it, and store it
  ikigai auth add openai < key.txt     Read the key from a file
  ikigai auth list                     Show which providers have a key, and where it is
  ikigai auth rm anthropic             Remove the stored key

Keys are stored in credentials.toml beside your configuration file. Only you can read it, and
commands in the sandbox cannot see it. A key in a variable wins over the stored one.";

pub(super) const MODELS: &str = "\
Examples:
  ikigai models                 List the models of every provider with a key or an address of yours
  ikigai models sonnet          List those with 'sonnet' in the name
  ikigai models --json openai   Print an array for scripts

Limits and prices (dollars per million tokens) come from your configuration, from the server's list
and from a built-in table. A dash means that none of them knows.";

pub(super) const QUARANTINE: &str = "\
Examples:
  ikigai quarantine                                  List the files and the reasons
  ikigai quarantine --put-back 1763467200-000000001  Put a file back in its place

Sandboxed commands may not change git's settings, AGENTS.md, editor settings and the like. When a
command ends, such changes are moved to the quarantine and the original files are restored.";

pub(super) const COMPLETION: &str = "\
Examples:
  ikigai completions bash > ~/.local/share/bash-completion/completions/ikigai
  ikigai completions zsh > ~/.zfunc/_ikigai
  ikigai completions fish > ~/.config/fish/completions/ikigai.fish";
