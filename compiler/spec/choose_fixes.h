#ifndef PLANC_COMPILER_SPEC_CHOOSE_FIXES_H_
#define PLANC_COMPILER_SPEC_CHOOSE_FIXES_H_

#include <functional>

#include "compiler/diagnostics/diagnostic.h"

namespace planc {

// All diagnostics of the job with `changes` made to it.
using TryJob = std::function<DiagnosticList(const Proposal& changes)>;

// Turns the proposals of each diagnostic into its fix. A proposal is shown if the job with it no
// longer has the diagnostic, and has no other that it did not have before; where no single one
// passes, pairs of a proposal and what cures its consequences are tried. Diagnostics of which none
// passes keep their fix in words. The number of tries is bounded.
void ChooseFixes(const TryJob& try_job, DiagnosticList& diagnostics);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_CHOOSE_FIXES_H_
