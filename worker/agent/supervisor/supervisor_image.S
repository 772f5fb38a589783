/* The program tune-supervisor as bytes in the library, so that `tune` stays one file to copy. */
    .section .rodata
    .global supervisor_image_begin
    .global supervisor_image_end
    .balign 16
supervisor_image_begin:
    .incbin SUPERVISOR_IMAGE
supervisor_image_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
