#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "executor/train/records/orders.h"

// How a pod of a job that goes on with those that are left is told to take part in a start of the
// job. Its launcher is outside the cluster and has kubectl alone: it writes the order into an
// annotation of the pod, and the kubelet shows that as a file in the pod. So the cluster itself
// says which pod has which rank, whoever watches. A pod that waits, and one that takes part, says
// so in its log. Whoever may annotate the namespace's pods may give orders.
namespace reckon {

/// Of pods: the newest order that they were given (order_text()). Of their Jobs: the number of the
/// newest start that any pod was told, so that a later launcher counts on from there.
inline constexpr const char* kStartAnnotation = "reckon/start";

/// Of a pod that takes orders: RECKON_ORDERS_FILE.
std::optional<std::filesystem::path> orders_file();

/// "4 2 8 10.0.0.7:2222 end": start, rank, ranks of the start, where rank 0 listens. Without its
/// end it is torn. An older reckon-worker reads the first word alone.
std::string order_text(const TrainOrder& order);

/// What the text of an order says. Neither an order nor a problem: none is there yet.
struct PodOrder {
  std::optional<TrainOrder> order;
  /// The text is a number alone, as an older launcher writes it: of the start, in which the pod has
  /// the part that its environment names. The rest of `order` means nothing.
  bool own_part = false;
  std::string problem;  // why the text is no order
};
PodOrder parse_order(std::string_view text);
PodOrder read_order(const std::filesystem::path& file);

/// What an order of a pod means for one of its ranks, where all pods have as many.
TrainOrder order_of_rank(TrainOrder of_pod, const RankOfPod& rank);
/// And back.
TrainOrder order_of_pod(TrainOrder of_rank, int ranks);

/// What a pod prints that waits for an order; `behind`: the start that it has left, -1: none.
std::string waiting_line(std::int64_t behind);
/// nullopt: the line says something else.
std::optional<std::int64_t> parse_waiting_line(std::string_view line);

/// What a pod prints that takes part in a start: what it prints from then on is of that rank.
std::string part_line(const TrainOrder& order);
/// Start, rank and ranks. nullopt: the line says something else.
std::optional<TrainOrder> parse_part_line(std::string_view line);

}  // namespace reckon
