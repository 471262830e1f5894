"""Asking a language model from the editor: in a process of its own, once the user has agreed to what is sent."""
