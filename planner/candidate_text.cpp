#include <fmt/format.h>

#include "planner/space/space.h"
#include "sim/scenario/split_text.h"

// A candidate in words.
namespace reckon::planner {

std::string bought_text(const Offer& offer, int nodes) {
  if (!offer.made_by.empty()) return offer.made_by;
  if (!offer.is_mixed()) {
    std::string text(to_text(offer.pricing));
    const int least = offer.bounds.least_nodes(nodes), most = offer.bounds.most_nodes(nodes);
    if (least < most) return text + fmt::format(", in a pool of {}..{}", least, most);
    if (most > nodes) return text + fmt::format(", {} of them spare", most - nodes);
    return text;
  }
  const int base = base_nodes(offer, nodes);
  std::string text;
  if (base > 0) text = fmt::format("{} {} + ", base, to_text(offer.mix.base));
  text += fmt::format("{} spot", nodes - base);
  if (offer.mix.patience)
    text += fmt::format(", on_demand fallback after {}", offer.mix.patience_text);
  return text;
}

std::string hardware_text(const Hardware& h, int nodes) {
  if (!h.slice.empty()) return fmt::format("{} ({} {})", h.slice, h.per_node, h.accelerator);
  const std::string machine = h.machine.empty() ? "machine of your own" : h.machine;
  if (h.accelerator.empty()) return fmt::format("{} x {}", nodes, machine);
  return fmt::format("{} x {} with {} {}", nodes, machine, h.per_node, h.accelerator);
}

std::string checkpoint_text(const Hardware& h) {
  std::string text;
  if (const auto& save = h.save_interval) {
    using Mode = CheckpointSpec::Mode;
    text = save->mode == Mode::none      ? "no checkpoints"
           : save->mode == Mode::optimal ? "checkpoints at the optimal interval"
                                         : "checkpoints every " + save->text;
  }
  if (!h.checkpoint_storage.empty())
    text += fmt::format("{} on {}", text.empty() ? "checkpoints" : "", h.checkpoint_storage);
  return text;
}

std::string restart_words(const Offer& offer) {
  if (!offer.restart) return "";
  const RestartSpec& r = *offer.restart;
  if (r.spares) return fmt::format("{} warm spare{}", *r.spares, *r.spares == 1 ? "" : "s");
  const std::string text = fmt::format("{} restart", to_text(r.kind));
  return r.min ? text + fmt::format(", at least {} nodes", *r.min) : text;
}

std::string recompute_text(const Layout& l) {
  return l.recompute == Recompute::none ? ""
                                        : fmt::format(", {} recomputation", to_text(l.recompute));
}

std::string strategy_text(const Split& s) {
  const Layout& l = s.layout;
  std::string text = split_text(s.kind, l, s.parameter_servers);
  text += fmt::format(", batch {}", l.micro_batch);
  if (l.micro_batches > 1) text += fmt::format(" x {}", l.micro_batches);
  return text + recompute_text(l);
}

}  // namespace reckon::planner
