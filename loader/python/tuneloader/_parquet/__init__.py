"""What make_reader and make_batch_reader are made of: files, row groups, metadata of Petastorm, and threads that read."""
