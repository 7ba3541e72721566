#pragma once
#include "report/html/html.h"

namespace reckon::test {

/// In place of the scripts and the style that the build makes.
inline const HtmlAssets kAssets{"/* scripts */\n", "/* style */\n", "/* program */\n"};

}  // namespace reckon::test
