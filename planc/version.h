#ifndef PLANC_PLANC_VERSION_H_
#define PLANC_PLANC_VERSION_H_

namespace planc {

// The version of planc: of its manual pages and packages too.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace planc

#endif  // PLANC_PLANC_VERSION_H_
