// What every report holds, as it stands in its files: nothing is looked for beside the program.
  .section .rodata
  .global reckon_html_style, reckon_html_style_end
  .global reckon_html_program, reckon_html_program_end
  .global reckon_html_scripts, reckon_html_scripts_end
reckon_html_style:
  .incbin RECKON_HTML_STYLE
reckon_html_style_end:
reckon_html_program:
  .incbin RECKON_HTML_PROGRAM
reckon_html_program_end:
reckon_html_scripts:
#ifdef RECKON_HTML_SCRIPTS
  .incbin RECKON_HTML_SCRIPTS
#endif
reckon_html_scripts_end:
  .section .note.GNU-stack,"",%progbits
