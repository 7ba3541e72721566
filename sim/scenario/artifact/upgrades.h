#pragma once
#include <array>

#include "sim/scenario/artifact/json.h"

// How the JSON of an older version becomes that of the next.
namespace reckon::artifact {

/// 1 to 2: a strategy is a layout and, where it has them, parameter servers. In version 1 the
/// degrees stood in the strategy itself, and the batch of an accelerator in the job.
void nest_layout_and_servers(Json& artifact);

/// 2 to 3: layers have new fields, classes of links say what a collective's call takes, prices have
/// a spread, reservations a start, the cluster its power and texts a currency. In version 2 no call
/// was measured, every price was certain, every reservation held from the start, and nothing was
/// known of power.
void add_calls_markets_power_and_layers(Json& artifact);

/// 3 to 4: data may have a validation set, and say how many threads load it. Some plans of version
/// 3 have the former.
void add_fields_of_data(Json& artifact);

inline constexpr std::array<Upgrade, kArtifactVersion - 1> kUpgrades{
    nest_layout_and_servers, add_calls_markets_power_and_layers, add_fields_of_data};

}  // namespace reckon::artifact
