#include "exchange/literal_word.h"

namespace reckon {

std::string literal_word(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == '$' ? 2 : 1, c);
  return out;
}

}  // namespace reckon
