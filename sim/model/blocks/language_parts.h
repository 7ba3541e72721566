#pragma once
#include "sim/model/blocks/networks.h"
#include "sim/model/blocks/stack_builder.h"

// What networks with a text have in common.
namespace reckon {

/// The table itself: (T) ids -> (T, hidden).
LayerId embedded_text(LayerList& net, const LanguageNetwork& network, LayerId ids);
/// What is added to the embedded tokens before the blocks.
LayerId text_positions(LayerList& net, const LanguageNetwork& network, LayerId embedded);
/// Output projection and loss, behind the last norm.
void language_head(LayerList& net, const LanguageNetwork& network, LayerId embedding,
                   std::int64_t tokens, LayerId x);

/// The tokens of an image, behind the tower's last norm. `image`: what comes in, (patches, width).
LayerId vision_tokens(LayerList& net, const VisionTower& tower, const std::string& prefix,
                      LayerId image);

}  // namespace reckon
