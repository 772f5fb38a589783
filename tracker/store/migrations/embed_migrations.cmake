# Writes OUTPUT, a C++ include with one entry a file of SQL, so that the program reads no files of its own at run time.
# Arguments: OUTPUT, FILES (separated by ";", in order of version).
set(text "")
foreach(file ${FILES})
  file(READ ${file} sql)
  get_filename_component(name ${file} NAME)
  string(REGEX MATCH "^[0-9]+" number ${name})
  string(REGEX REPLACE "^0+" "" version "${number}")
  string(APPEND text "{${version}, \"${name}\", R\"sql(${sql})sql\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
