#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Ids are dense indices that do not mix: a NodeId is not a JobId.
namespace reckon {

enum class NodeId : std::uint32_t {};
enum class PoolId : std::uint32_t {};
enum class JobId : std::uint32_t {};
enum class LinkId : std::uint32_t {};
enum class LayerId : std::uint32_t {};

template <class Id>
requires(sizeof(Id) == sizeof(std::uint32_t) && !std::is_integral_v<Id>) constexpr std::size_t
    index(Id id) {
  return static_cast<std::size_t>(id);
}

}  // namespace reckon
