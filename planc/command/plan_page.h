#ifndef PLANC_PLANC_COMMAND_PLAN_PAGE_H_
#define PLANC_PLANC_COMMAND_PLAN_PAGE_H_

#include <string>
#include <vector>

#include "planc/show/show.h"

namespace planc {

// The sections as one HTML page that needs no other file: the text of each, and, where the step
// could be predicted, its timeline as a picture (SVG).
std::string PlanPage(const ShowInput& input, const std::vector<ShowSection>& sections);

}  // namespace planc

#endif  // PLANC_PLANC_COMMAND_PLAN_PAGE_H_
