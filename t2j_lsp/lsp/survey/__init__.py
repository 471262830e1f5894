"""How far the workspace's migration is: ``process`` reads the files, ``service`` says when and keeps the answer."""
