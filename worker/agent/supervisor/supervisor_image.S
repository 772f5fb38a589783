/* The program tune-exec as bytes in the library, so that `tune` stays one file to copy. */
    .section .rodata
    .global tune_exec_image_begin
    .global tune_exec_image_end
    .balign 16
tune_exec_image_begin:
    .incbin TUNE_EXEC_IMAGE
tune_exec_image_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
