#include "report/markup.h"

#include <catch2/catch.hpp>

#include "report/memo/parts.h"

using namespace reckon;

TEST_CASE("markup in a text is text, in elements and in attributes of either quote") {
  CHECK(markup_text("</script>&\"'") == "&lt;/script&gt;&amp;&quot;&#39;");
  CHECK(markup_text("]]>") == "]]&gt;");
  CHECK(markup_text("a\tb\r\nc") == "a&#9;b&#13;&#10;c");
}

TEST_CASE("what is no UTF-8, or no character of XML, becomes the replacement character") {
  CHECK(markup_text("a\xFF") == "a\xEF\xBF\xBD");
  CHECK(markup_text("\xC3\xA4") == "\xC3\xA4");
  CHECK(markup_text("\xE2\x82") == "\xEF\xBF\xBD\xEF\xBF\xBD");          // cut short
  CHECK(markup_text("\xED\xA0\x80").find('\xED') == std::string::npos);  // a surrogate
  CHECK(markup_text("\xF0\x9F\x98\x80") == "\xF0\x9F\x98\x80");
  CHECK(markup_text("\x1b[31m") == "\xEF\xBF\xBD[31m");
  CHECK(markup_text("\xEF\xBF\xBE") == "\xEF\xBF\xBD");  // U+FFFE
  CHECK(markup_text("").empty());
}

TEST_CASE("Markdown keeps a name on its line, and a command between enough backticks") {
  CHECK(markdown_safe("a\n# b|<i>") == "a\\\\n# b\\|\\<i\\>");
  CHECK(markdown_code("reckon plan a.yaml") == "`reckon plan a.yaml`");
  CHECK(markdown_code("reckon plan 'a``b.yaml'") == "``` reckon plan 'a``b.yaml' ```");
}
