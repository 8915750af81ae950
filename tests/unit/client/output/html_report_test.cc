#include "client/output/html_report.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "client/output/html.h"
#include "tests/unit/client/collective_samples.h"
#include "tests/unit/client/golden.h"

namespace param {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Every element that is opened is closed, in order. Not for void elements.
std::string Unbalanced(const std::string& html) {
  const std::regex tag(R"(<(/?)([a-zA-Z0-9]+)((?:[^>"]|"[^"]*")*)>)");
  std::vector<std::string> open;
  for (std::sregex_iterator it(html.begin(), html.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2], rest = (*it)[3];
    if (name == "meta" || name == "br" || (!rest.empty() && rest.back() == '/')) continue;
    if ((*it)[1].length() == 0) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + "> closes " + (open.empty() ? "nothing" : "<" + open.back() + ">");
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

TEST(HtmlText, EscapesAndReplaces) {
  EXPECT_EQ(HtmlText("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(HtmlText("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82"),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82");
  EXPECT_EQ(HtmlText("a\x01z\x7f"), "a\xef\xbf\xbdz\xef\xbf\xbd");
  EXPECT_EQ(HtmlText("\xff\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // overlong
  EXPECT_EQ(HtmlText("\xed\xa0\x80").size(), 9u);                               // a surrogate
  EXPECT_EQ(HtmlText("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");                  // cut off
}

TEST(HtmlReport, OfASweepIsTheGoldenOne) {
  ExpectGolden("tests/golden/cli/report.html", RenderHtmlReport(SweepJob()));
}

TEST(HtmlReport, HasAllItsParts) {
  const std::string html = RenderHtmlReport(SweepJob());
  EXPECT_EQ(Unbalanced(html), "");
  for (const char* part :
       {"<h2>Job</h2>", "<h2>Curves</h2>", "<h2>Cases</h2>", "<h2>Ranks</h2>", "<h2>Nodes</h2>",
        "<h2>Environment</h2>", "<h2>Repeat</h2>", "time p50 over size", "bus bandwidth over size",
        "<title>all_reduce f32, 16 MiB: ", "prefers-color-scheme: dark"}) {
    EXPECT_TRUE(Has(html, part)) << part;
  }
}

TEST(HtmlReport, LoadsNothing) {
  const std::string html = RenderHtmlReport(SweepJob());
  for (const char* part : {"http://", "https://", "src=", "href=", "url(", "@import", "<script"}) {
    EXPECT_FALSE(Has(html, part)) << part;
  }
  EXPECT_TRUE(Has(html, "default-src 'none'"));
}

TEST(HtmlReport, HostileTextStaysText) {
  const std::string evil = "</td></title><script>alert(1)</script>\"'><img src=x onerror=y>";
  v1::GetJobResponse job = SweepJob();
  job.mutable_job()->set_job_id("j-" + evil);
  job.mutable_job()->mutable_spec()->set_name(evil);
  job.mutable_job()->set_reason(evil);
  job.mutable_job()->set_backend(evil);
  job.mutable_job()->set_nodes(0, evil);
  job.mutable_job()->set_state(v1::FAILED);
  v1::Failure* failure = job.mutable_job()->mutable_failure();
  failure->set_code(evil);
  failure->set_cause(evil);
  failure->set_node(evil);
  (*job.mutable_environment(0)->mutable_facts())[evil] = evil;
  for (v1::CaseResult& result : *job.mutable_cases()) {
    result.set_reason(evil);
    (*result.mutable_info())["library"] = evil;
    (*result.mutable_params())["dtype"].set_text("f32");
    (*result.mutable_params())["split"].set_text(evil);
    for (v1::RankStatus& rank : *result.mutable_ranks()) rank.set_node(evil);
  }
  const std::string html = RenderHtmlReport(job);
  EXPECT_EQ(Unbalanced(html), "");
  EXPECT_FALSE(Has(html, "<script"));
  EXPECT_FALSE(Has(html, "<img"));
  EXPECT_TRUE(Has(html, "&lt;script&gt;"));
}

TEST(HtmlReport, OfAnotherBenchmarkHasItsTable) {
  const std::string html = RenderHtmlReport(SampleResponse(v1::FAILED, v1::WRONG));
  EXPECT_EQ(Unbalanced(html), "");
  EXPECT_TRUE(Has(html, "524.3 GFLOP/s"));
  EXPECT_FALSE(Has(html, "<svg"));
  EXPECT_TRUE(Has(html, "element 17 is 4.5"));
}

TEST(HtmlReport, OfAJobThatNeverRanIsStillAReport) {
  v1::GetJobResponse response;
  *response.mutable_job() = SampleJob(v1::CANCELLED);
  response.mutable_job()->clear_nodes();
  const std::string html = RenderHtmlReport(response);
  EXPECT_EQ(Unbalanced(html), "");
  EXPECT_FALSE(Has(html, "<h2>Ranks</h2>"));
  EXPECT_TRUE(Has(html, "CANCELLED"));
}

TEST(HtmlReport, AHeatMapOfManyRanksShowsTheSlowest) {
  v1::GetJobResponse job = SweepJob();
  v1::CaseResult* result = job.mutable_cases(0);
  for (int rank = 4; rank < 300; ++rank) {
    AddMeasurement(result, rank, "time", "s", rank == 299 ? 9 : 1e-5);
    v1::RankStatus* at = result->add_ranks();
    at->set_rank(rank);
    at->set_node("n" + std::to_string(rank));
  }
  const std::string html = RenderHtmlReport(job);
  EXPECT_TRUE(Has(html, "Shown are 256 of 300 ranks (the slowest) and 3 of 3 cases."));
  EXPECT_TRUE(Has(html, "<tr><td>299</td>"));
}

}  // namespace
}  // namespace param
