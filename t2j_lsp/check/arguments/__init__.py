"""Where the arguments of a check come from: comments, calls in the workspace, and plans to build them."""
