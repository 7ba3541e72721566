#include "sim/base/kubernetes_quantity.h"

#include <array>
#include <utility>

#include "sim/base/unit_text.h"

namespace reckon {

std::optional<double> kubernetes_quantity(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 15> kSuffixes{
      {{"Ki", 1024.0},
       {"Mi", 1048576.0},
       {"Gi", 1073741824.0},
       {"Ti", 1099511627776.0},
       {"Pi", 1125899906842624.0},
       {"Ei", 1152921504606846976.0},
       {"n", 1e-9},
       {"u", 1e-6},
       {"m", 1e-3},
       {"k", 1e3},
       {"M", 1e6},
       {"G", 1e9},
       {"T", 1e12},
       {"P", 1e15},
       {"E", 1e18}}};
  double factor = 1;
  for (const auto& [suffix, times] : kSuffixes)
    if (factor == 1 && text.ends_with(suffix)) {
      factor = times;
      text.remove_suffix(suffix.size());
    }
  const auto number = parse_number(text);
  return number ? std::optional(*number * factor) : std::nullopt;
}

bool counts_as_gpu(std::string_view resource) {
  return resource.ends_with("/gpu") || resource == "google.com/tpu";
}

}  // namespace reckon
