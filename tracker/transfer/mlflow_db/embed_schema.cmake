# Writes OUTPUT, a C++ raw string with the text of FILE, so that the program reads no files of its own at run time.
file(READ ${FILE} sql)
file(WRITE ${OUTPUT} "R\"sql(${sql})sql\"\n")
