// What is not a data file is refused by its first bytes, with its name and how to read it.
#include "runtime/data/file_kind.h"

#include <cstdint>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/data/token_stream.h"
#include "runtime/metrics/event_file.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

struct KindCase {
  std::string name;
  std::string bytes;
  std::string as_tokens;  // the message after "NAME: "
  bool as_bytes = true;   // refused as format bytes too
};

template <typename T>
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Bytes(const char* text, size_t size) { return std::string(text, size); }
#define BYTES_OF(text) Bytes(text, sizeof(text) - 1)

// The beginnings are those of files that the programs themselves wrote.
std::vector<KindCase> CompressedAndColumns() {
  const std::string rest(64, '\x01');
  const std::string zip =
      BYTES_OF("PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\0\0");
  const std::string to_jsonl =
      "[['text']].to_json('text.jsonl', orient='records', lines=True)`, then `planc tokenize "
      "text.jsonl`";
  return {
      {"a.idx", BYTES_OF("MMIDIDX\0\0") + rest,
       "is a Megatron index, not token numbers; write `data.format: megatron` and the path of the "
       "pair without .idx"},
      {"a.parquet", "PAR1" + rest,
       "is a Parquet file, not token numbers; take its text out, with Python: "
       "`pandas.read_parquet('a.parquet')" +
           to_jsonl},
      {"a.arrow", BYTES_OF("ARROW1\0\0\xff\xff\xff\xff") + rest,
       "is an Arrow (Feather) file, not token numbers; take its text out, with Python: "
       "`pyarrow.feather.read_feather('a.arrow')" +
           to_jsonl},
      {"s.arrow", BYTES_OF("\xff\xff\xff\xff\x10\0\0\0\x10\0\0\0\0\0\x0a\0") + rest,
       "is an Arrow stream, as Hugging Face datasets are stored, not token numbers; take its text "
       "out, with Python: `datasets.Dataset.from_file('s.arrow').to_json('text.jsonl')`, then "
       "`planc tokenize text.jsonl`"},
      {"a.gz", BYTES_OF("\x1f\x8b\x08\x08\0\0\0\0\0\x03") + rest,
       "is compressed by gzip, not token numbers; unpack it: `gzip -dk a.gz`"},
      {"a.zst", BYTES_OF("\x28\xb5\x2f\xfd\x04\x58") + rest,
       "is compressed by zstd, not token numbers; unpack it: `zstd -d a.zst`"},
      {"a.xz",
       BYTES_OF("\xfd"
                "7zXZ\0\0\x04") +
           rest,
       "is compressed by xz, not token numbers; unpack it: `xz -dk a.xz`"},
      {"a.bz2", "BZh91AY&SY" + rest,
       "is compressed by bzip2, not token numbers; unpack it: `bzip2 -dk a.bz2`"},
      {"a.lz4", BYTES_OF("\x04\x22\x4d\x18\x64") + rest,
       "is compressed by lz4, not token numbers; unpack it: `lz4 -d a.lz4`"},
      {"a.zip", zip + "text.txt" + rest,
       "is a zip archive, not token numbers; unpack it: `unzip a.zip`"},
      {"a.npz", zip + "tokens.npy" + rest,
       "is a NumPy archive (.npz), not token numbers; write its tokens with Python: "
       "`numpy.save('tokens.npy', numpy.load('a.npz')['NAME'])`"},
      {"a.pt", zip + "archive/data.pkl" + rest,
       "is a file of torch.save, not token numbers; write its tokens with Python: "
       "`numpy.save('tokens.npy', torch.load('a.pt').numpy())`"},
  };
}

std::vector<KindCase> Others() {
  const std::string rest(64, '\x01');
  const std::string tar = std::string("sample.json") + std::string(246, '\0') + "ustar" + rest;
  return {
      {"a.pkl", BYTES_OF("\x80\x04\x95\x0d\0\0\0\0\0\0\0]") + rest + ".",
       "is a Python pickle, not token numbers; write its tokens with Python: "
       "`numpy.save('tokens.npy', numpy.array(pickle.load(open('a.pkl', 'rb'))))`"},
      {"a.safetensors", Raw<uint64_t>(56) + "{\"a\":{\"dtype" + rest,
       "is a safetensors file, not token numbers; name a token file"},
      {"a.h5", BYTES_OF("\x89HDF\r\n\x1a\n") + rest,
       "is an HDF5 file, not token numbers; write its tokens with Python: "
       "`numpy.save('tokens.npy', h5py.File('a.h5')['NAME'][:])`"},
      {"a.db", BYTES_OF("SQLite format 3\0") + rest,
       "is an SQLite database, not token numbers; take its text out: `sqlite3 -json a.db 'select "
       "text from TABLE'`"},
      {"a.tfrecord", TfRecord("a record of some bytes"),
       "is a TFRecord file, not token numbers; take its text out, with Python: "
       "`tensorflow.data.TFRecordDataset('a.tfrecord')`, then `planc tokenize`"},
      {"a.tar", tar,
       "is a tar archive (WebDataset), not token numbers; unpack it: `tar -xf a.tar`, and name the "
       "files that were in it"},
      {"a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n",
       "is JSON, not token numbers; tokenize its text: `planc tokenize a.jsonl --json-key=text "
       "--tokenizer=FILE -o OUT`",
       false},
      {"a.json", "[\n  {\"text\": \"one\"}\n]\n",
       "is JSON, not token numbers; tokenize its text: `planc tokenize a.json --json-key=text "
       "--tokenizer=FILE -o OUT`",
       false},
      {"a.html", "\n<!DOCTYPE html>\n<html><body>text</body></html>\n",
       "is HTML, not token numbers; take its text out: `html2text a.html`", false},
      {"a.xml", "<?xml version=\"1.0\"?>\n<page>text</page>\n",
       "is XML, not token numbers; take its text out: `xmllint --xpath 'string(/)' a.xml`", false},
      {"a.pdf", "%PDF-1.7\n%" + rest,
       "is a PDF document, not token numbers; take its text out: `pdftotext a.pdf`"},
      {"utf16.txt", BYTES_OF("\xff\xfeU\0T\0F\0-\0001\0006\0"),
       "is UTF-16 text, not token numbers; convert it: `iconv -f UTF-16 -t UTF-8 utf16.txt > "
       "text.txt`"},
      {"lfs.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n",
       "is a Git LFS pointer, not the file it stands for, not token numbers; fetch the file: `git "
       "lfs pull`"},
      {"hellaswag.bin", BYTES_OF("\x8a\xd8\x34\x01\x01\0\0\0") + rest,
       "is an evaluation file of llm.c, not token numbers; name one of its token files: "
       "fineweb_train_*.bin, tiny_shakespeare_train.bin"},
      {"model.bin", BYTES_OF("\xc6\xd7\x34\x01\x03\0\0\0") + rest,
       "is a model of llm.c, not token numbers; name a token file"},
  };
}

std::vector<KindCase> Cases() {
  std::vector<KindCase> cases = CompressedAndColumns();
  for (KindCase& other : Others()) cases.push_back(std::move(other));
  return cases;
}

std::string MessageFor(const std::string& name, const std::string& bytes,
                       proto::DataFormat format) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << bytes;
  const auto stream = TokenStream::Open({name}, format, 2, testing::TempDir());
  std::string message(stream.status().message());
  // The messages of the table have the bare name where the user's path stands.
  const std::string directory = testing::TempDir() + "/";
  for (size_t at = 0; (at = message.find(directory)) != std::string::npos;) {
    message.erase(at, directory.size());
  }
  return message;
}

TEST(FileKindTest, EachKindIsRefusedByName) {
  std::set<std::string> seen;
  for (const KindCase& kind : Cases()) {
    const std::string message = MessageFor(kind.name, kind.bytes, proto::TOKENS);
    EXPECT_EQ(message, kind.name + ": " + kind.as_tokens);
    EXPECT_TRUE(seen.insert(message).second);
    const std::string as_bytes = MessageFor(kind.name, kind.bytes, proto::BYTES);
    if (kind.as_bytes) {
      EXPECT_THAT(as_bytes, HasSubstr(", not text; ")) << kind.name;
    } else {
      EXPECT_EQ(as_bytes, "") << "JSON, HTML and XML are text";
    }
  }
}

// Each row of the table, those without an example above too.
TEST(FileKindTest, EveryRowIsReached) {
  struct Row {
    size_t offset;
    std::string magic;
    std::string name;
  };
  const std::vector<Row> rows = {
#define PLANC_FILE_KIND(offset, magic, name, advice) \
  {offset, std::string(magic, sizeof(magic) - 1), name},
#include "runtime/data/file_kinds.def"
#undef PLANC_FILE_KIND
  };
  for (const Row& row : rows) {
    const std::string bytes =
        std::string(row.offset, '\x01') + row.magic + std::string(300, '\x01');
    EXPECT_THAT(MessageFor("row", bytes, proto::BYTES),
                HasSubstr("row: is " + row.name + ", not text; "));
  }
}

TEST(FileKindTest, TokensAndTextAreNotMistaken) {
  std::mt19937 random(7);
  for (const int vocab : {2, 65, 256, 1024, 50257, 65536}) {
    std::uniform_int_distribution<int> token(0, vocab - 1);
    for (int file = 0; file < 40; ++file) {
      std::string bytes;
      for (int i = 0; i < 300; ++i) bytes += Raw(static_cast<uint16_t>(token(random)));
      EXPECT_EQ(MessageFor("tokens", bytes, proto::TOKENS), "") << vocab;
    }
  }
  for (const char* const text :
       {"Once upon a time", "{not JSON}", "[1] A footnote", "<a> tag", "PARTS", "BZhello",
        "\xef\xbb\xbfwith a byte order mark", "\xd0\x9f\xd1\x80\xd0\xb8"}) {
    EXPECT_EQ(MessageFor("text", text, proto::BYTES), "") << text;
  }
}

}  // namespace
}  // namespace planc
