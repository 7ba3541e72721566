#include "report/html/html.h"

// Labels of assets.S.
extern "C" {
extern const char reckon_html_style;
extern const char reckon_html_style_end;
extern const char reckon_html_program;
extern const char reckon_html_program_end;
extern const char reckon_html_scripts;
extern const char reckon_html_scripts_end;
}

namespace reckon {
namespace {

std::string_view between(const char& begin, const char& end) {
  return {&begin, std::size_t(&end - &begin)};
}

}  // namespace

HtmlAssets html_assets() {
  return {between(reckon_html_scripts, reckon_html_scripts_end),
          between(reckon_html_style, reckon_html_style_end),
          between(reckon_html_program, reckon_html_program_end)};
}

std::string why_no_html() {
  const std::string reason = RECKON_HTML_REASON;
  return reason.empty() ? "" : reason + " when reckon was built";
}

}  // namespace reckon
