#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

// How a pod of a job that goes on with those that are left is told to take part in a start of the
// job. Its launcher is outside the cluster and has kubectl alone: it writes the number of the start
// into an annotation of the pod, and the kubelet shows that as a file in the pod. A pod that waits
// says so in its log. Whoever may annotate the namespace's pods may give orders.
namespace reckon {

/// Of pods: the newest start that they were told to take part in. Of their Jobs: the newest that
/// any pod was, so that a later launcher counts on from there.
inline constexpr const char* kStartAnnotation = "reckon/start";

/// Of a pod that takes orders: RECKON_ORDERS_FILE.
std::optional<std::filesystem::path> orders_file();
/// The start that the file names; nullopt: there is no such file yet, or it is empty.
std::optional<std::int64_t> read_start(const std::filesystem::path& file);

/// What a pod prints that waits for an order; `behind`: the start that it has left, -1: none.
std::string waiting_line(std::int64_t behind);
/// nullopt: the line says something else.
std::optional<std::int64_t> parse_waiting_line(std::string_view line);

}  // namespace reckon
