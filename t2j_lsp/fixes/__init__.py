"""Fixed bugs: their record, offers of similar ones, and those that a user keeps."""
