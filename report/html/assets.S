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

// `reckon explore`: the body, the style beside the reports', the scripts one behind the other, from web/explore.
  .global reckon_explore_body, reckon_explore_body_end
  .global reckon_explore_style, reckon_explore_style_end
  .global reckon_explore_program, reckon_explore_program_end
reckon_explore_body:
  .incbin "page.html"
reckon_explore_body_end:
reckon_explore_style:
  .incbin "explore.css"
reckon_explore_style_end:
reckon_explore_program:
  .incbin "text.js"
  .incbin "service.js"
  .incbin "choices.js"
  .incbin "controls.js"
  .incbin "forecast.js"
  .incbin "front.js"
  .incbin "main.js"
reckon_explore_program_end:
  .section .note.GNU-stack,"",%progbits
