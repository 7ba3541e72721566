#pragma once
#include <optional>
#include <string>
#include <string_view>

// Bytes as text, in the alphabet of RFC 4648, section 4, padded and without line ends: how
// Kubernetes keeps the binaryData of a ConfigMap.
namespace reckon {

std::string to_base64(std::string_view bytes);
/// nullopt: it is none, or has characters of another alphabet, or bits behind its end.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace reckon
