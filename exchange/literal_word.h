#pragma once
#include <string>
#include <string_view>

namespace reckon {

/// A word of a container's command line or environment that Kubernetes reads as `text` itself: it
/// puts a variable's value in place of "$(NAME)", and "$" in place of "$$".
std::string literal_word(std::string_view text);

}  // namespace reckon
