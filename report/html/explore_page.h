#pragma once
#include <string>
#include <string_view>

namespace reckon {

/// The page of `reckon explore`, all of it: it asks its server alone. Its style and scripts carry
/// `nonce`, so that a Content-Security-Policy can name them. `quick`: replications of a forecast
/// while controls move.
std::string explore_page(std::string_view nonce, int quick);

}  // namespace reckon
