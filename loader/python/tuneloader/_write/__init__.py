"""What is written: MDS out of samples and frames, here and in object stores, and indexes made one."""
