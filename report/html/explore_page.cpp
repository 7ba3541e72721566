#include "report/html/explore_page.h"

#include <fmt/format.h>

#include "report/html/html.h"

// Labels of assets.S.
extern "C" {
extern const char reckon_explore_body;
extern const char reckon_explore_body_end;
extern const char reckon_explore_style;
extern const char reckon_explore_style_end;
extern const char reckon_explore_program;
extern const char reckon_explore_program_end;
}

namespace reckon {
namespace {

std::string_view asset(const char& begin, const char& end) {
  return {&begin, std::size_t(&end - &begin)};
}

}  // namespace

std::string explore_page(std::string_view nonce, int quick) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\" data-quick=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>reckon explore</title>\n<style nonce=\"{}\">\n",
      quick, nonce);
  out += html_assets().style;
  out += asset(reckon_explore_style, reckon_explore_style_end);
  out += "</style>\n</head>\n<body>\n";
  out += asset(reckon_explore_body, reckon_explore_body_end);
  out += fmt::format("<script nonce=\"{}\">\n", nonce);
  out += asset(reckon_explore_program, reckon_explore_program_end);
  return out + "</script>\n</body>\n</html>\n";
}

}  // namespace reckon
