#include "runtime/step/profile_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/step/op_family.h"
#include "runtime/step/profile_summary.h"
#include "schemas/counted.h"
#include "schemas/opcode.h"

namespace planc {
namespace {

constexpr int kComputeStream = static_cast<int>(Stream::kCompute);

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

double Percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole));
}

// Billions a second; "" for none.
std::string Rate(double amount, int64_t nanoseconds) {
  if (amount <= 0 || nanoseconds <= 0) return "";
  return absl::StrFormat("%.2f", amount / static_cast<double>(nanoseconds));
}

void AppendHeader(const char* what, std::string* text) {
  absl::StrAppendFormat(text, "  %-24s%9s%11s%8s%9s%8s%11s%7s  %s\n", what, "calls", "seconds",
                        "share", "GFLOP/s", "GB/s", "floor", "ratio", "bound");
}

// One line of the columns above; `whole` is what the share is of.
void AppendTotal(const char* name, const OpTotal& total, int64_t whole, std::string* text) {
  const bool sends = total.bytes_sent > 0;
  const std::string bandwidth =
      sends ? Rate(static_cast<double>(total.bytes_sent), total.sending_nanoseconds)
            : Rate(total.bytes, total.nanoseconds);
  std::string floor;
  std::string ratio;
  std::string bound;
  if (total.floor_seconds > 0) {
    floor = absl::StrFormat("%.6f", total.floor_seconds);
    ratio = absl::StrFormat("%.2f", Seconds(total.nanoseconds) / total.floor_seconds);
    // A family may hold both kinds; it is named for what makes up most of its floor.
    bound = 2 * total.product_seconds > total.floor_seconds ? "  compute" : "  memory";
  }
  absl::StrAppendFormat(text, "  %-24s%9d%11.6f%7.2f%%%9s%8s%11s%7s%s\n", name, total.calls,
                        Seconds(total.nanoseconds), Percent(total.nanoseconds, whole),
                        Rate(total.flops, total.nanoseconds), bandwidth, floor, ratio, bound);
}

void AppendTime(const std::string& name, int64_t nanoseconds, int64_t whole, std::string* text) {
  absl::StrAppendFormat(text, "  %-24s%9s%11.6f%7.2f%%\n", name, "", Seconds(nanoseconds),
                        Percent(nanoseconds, whole));
}

// The rows of `totals` that have calls, the longest first: indices.
template <size_t kSize>
std::vector<int> LongestFirst(const std::array<OpTotal, kSize>& totals) {
  std::vector<int> rows;
  for (size_t i = 0; i < kSize; ++i) {
    if (totals[i].calls > 0) rows.push_back(static_cast<int>(i));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](int a, int b) { return totals[a].nanoseconds > totals[b].nanoseconds; });
  return rows;
}

std::string RatesText(const MachineRates& rates) {
  std::string text = absl::StrFormat("measured with %s: products fp32 %.1f GFLOP/s, ",
                                     Counted(rates.threads, "thread"), rates.fp32_flops * 1e-9);
  if (rates.bf16_flops > 0) {
    absl::StrAppendFormat(&text, "bf16 %.1f GFLOP/s, ", rates.bf16_flops * 1e-9);
  }
  absl::StrAppendFormat(&text, "memory %.1f GB/s\n", rates.bytes_per_second * 1e-9);
  return text;
}

void AppendFamilies(const ProfileSummary& summary, std::string* text) {
  const int64_t whole = summary.nanoseconds();
  AppendHeader("family", text);
  for (const int family : LongestFirst(summary.families)) {
    AppendTotal(OpFamilyName(static_cast<OpFamily>(family)), summary.families[family], whole, text);
  }
  const StreamTotal& compute = summary.streams[kComputeStream];
  AppendTime("waiting (compute)", compute.waiting, whole, text);
  AppendTime("dispatch (compute)", compute.dispatch, whole, text);
  const double floor = summary.floor_seconds;
  absl::StrAppendFormat(text, "  %-24s%9s%11.6f%7.2f%%%9s%8s%11.6f%7.2f\n", "whole step", "",
                        Seconds(whole), 100.0, "", "", floor,
                        floor > 0 ? Seconds(whole) / floor : 0.0);
  for (int stream = 0; stream < kStreamCount; ++stream) {
    const StreamTotal& total = summary.streams[stream];
    if (total.instructions == 0) continue;
    absl::StrAppendFormat(
        text,
        "dispatch on %s: %.3f us for each of %d instructions (median %.3f us), %.3f%% of the "
        "step\n",
        StreamName(static_cast<Stream>(stream)),
        1e-3 * static_cast<double>(total.dispatch) / static_cast<double>(total.instructions),
        total.instructions, 1e-3 * static_cast<double>(total.median_dispatch),
        Percent(total.dispatch, whole));
  }
}

void AppendCommunication(const Plan& plan, const ProfileSummary& summary, std::string* text) {
  const CommunicationTotal& all = summary.communication;
  absl::StrAppendFormat(text, "communication: total %.6f s, exposed %.6f s, overlapped %.6f s\n",
                        Seconds(all.running), Seconds(all.exposed),
                        Seconds(all.running - all.exposed));
  if (all.sum.calls == 0) return;
  absl::StrAppendFormat(text, "  exposed: %.2f%% of communication, %.2f%% of the step\n",
                        Percent(all.exposed, all.running),
                        Percent(all.exposed, summary.nanoseconds()));
  absl::StrAppendFormat(text, "  %-24s%9s%11s%12s%12s%11s%8s\n", "group", "calls", "seconds",
                        "exposed", "overlapped", "sent MB", "GB/s");
  for (size_t group = 0; group < summary.groups.size(); ++group) {
    const CommunicationTotal& one = summary.groups[group];
    if (one.sum.calls == 0) continue;
    const double sent = static_cast<double>(one.sum.bytes_sent);
    absl::StrAppendFormat(text, "  %-24s%9d%11.6f%12.6f%12.6f%11.3f%8s\n", plan.groups[group].name,
                          one.sum.calls, Seconds(one.running), Seconds(one.exposed),
                          Seconds(one.running - one.exposed), sent * 1e-6,
                          Rate(sent, one.sum.sending_nanoseconds));
  }
}

void AppendProducts(const ProfileSummary& summary, std::string* text) {
  if (summary.products.empty()) return;
  std::vector<std::pair<std::string, OpTotal>> rows(summary.products.begin(),
                                                    summary.products.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  absl::StrAppendFormat(text, "  %-36s%9s%11s%8s%9s%11s%7s\n", "product (m x n x k)", "calls",
                        "seconds", "share", "GFLOP/s", "floor", "ratio");
  for (const auto& [shape, total] : rows) {
    const double seconds = Seconds(total.nanoseconds);
    absl::StrAppendFormat(text, "  %-36s%9d%11.6f%7.2f%%%9s%11.6f%7.2f\n", shape, total.calls,
                          seconds, Percent(total.nanoseconds, summary.nanoseconds()),
                          Rate(total.flops, total.nanoseconds), total.floor_seconds,
                          total.floor_seconds > 0 ? seconds / total.floor_seconds : 0.0);
  }
}

void AppendStream(Stream stream, const StreamTotal& total, std::string* text) {
  absl::StrAppendFormat(text, "stream %s: %.6f s\n", StreamName(stream),
                        Seconds(total.nanoseconds));
  AppendHeader("opcode", text);
  for (const int opcode : LongestFirst(total.opcodes)) {
    AppendTotal(TraitsOf(static_cast<Opcode>(opcode)).text.c_str(), total.opcodes[opcode],
                total.nanoseconds, text);
  }
  AppendTime("waiting for events", total.waiting, total.nanoseconds, text);
  AppendTime("dispatch", total.dispatch, total.nanoseconds, text);
  if (total.dropped > 0) {
    absl::StrAppendFormat(text, "  (%d earlier instructions dropped)\n", total.dropped);
  }
}

}  // namespace

std::string ProfileTable(const Plan& plan, const RankProfile& profile, const MachineRates& rates) {
  const ProfileSummary summary = SummaryOf(plan, profile, rates);
  std::string text = absl::StrFormat("last step: %.6f s\n", Seconds(summary.nanoseconds()));
  absl::StrAppend(&text, RatesText(rates));
  AppendFamilies(summary, &text);
  AppendProducts(summary, &text);
  AppendCommunication(plan, summary, &text);
  for (int stream = 0; stream < kStreamCount; ++stream) {
    if (summary.streams[stream].instructions == 0) continue;
    AppendStream(static_cast<Stream>(stream), summary.streams[stream], &text);
  }
  return text;
}

}  // namespace planc
