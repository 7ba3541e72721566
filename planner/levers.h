#pragma once
#include <string_view>

#include "planner/search/ranked.h"

// Numbers that a choice may hang on, each moved by a factor.
namespace reckon::planner {

enum class Lever {
  price_here,        // of all nodes with the chosen accelerator in its region, as they are bought
  price_everywhere,  // the same in all regions
  reclaims,          // how often spot nodes are reclaimed, of every plan that has some
  network            // printed bandwidth of every node: between nodes, and to the data
};
std::string_view to_text(Lever lever);

/// Lives stay as they are; only their bills move.
bool is_price(Lever lever);

/// Nodes whose price is one number to a buyer: those with one accelerator, else of one machine.
bool same_goods(const Hardware& a, const Hardware& b);

/// Does the lever move the plan at all? `chosen`: whose price a price lever is.
bool moves(const Plan& plan, const RankedPlan& of, const RankedPlan& chosen, Lever lever);

/// The plan with the lever's number times the factor.
Plan with_lever(Plan plan, const RankedPlan& of, const RankedPlan& chosen, Lever lever,
                double factor);  // new over old number

}  // namespace reckon::planner
