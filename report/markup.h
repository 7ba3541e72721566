#pragma once
#include <string>
#include <string_view>

namespace reckon {

/// Text between the tags of XML 1.0, SVG or HTML, or inside a quoted attribute of theirs: the five
/// characters of markup and line breaks as references; U+FFFD for what is no UTF-8, and for
/// characters that XML 1.0 cannot hold [XML 1.0, 2.2].
std::string markup_text(std::string_view text);

}  // namespace reckon
