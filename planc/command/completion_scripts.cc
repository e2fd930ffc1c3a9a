#include "planc/command/completion_scripts.h"

namespace planc {
namespace {

// Bash splits words at '=' and ':' and replaces the last piece only.
constexpr char kBash[] = R"shell(# Completion of planc for bash.
_planc() {
  local -a words=()
  local word line rest glued='' suffix
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ ${#words[@]} -gt 0 && ( -n $glued || $word == [=:]* ) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    glued=''
    if [[ $word == *[=:] ]]; then glued=1; fi
  done
  local current=${words[-1]}
  local last=${current##*[=:]}
  local prefix=${current%"$last"}
  COMPREPLY=()
  while IFS=$'\t' read -r line rest; do
    case $line in
      :files)
        compopt -o filenames 2>/dev/null || :
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$last") ;;
      :files*)
        compopt -o filenames 2>/dev/null || :
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$last")
        for suffix in ${line#:files}; do
          mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X "!*$suffix" -- "$last")
        done ;;
      :folders)
        compopt -o filenames 2>/dev/null || :
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$last") ;;
      *)
        if [[ $line == *= ]]; then compopt -o nospace 2>/dev/null || :; fi
        COMPREPLY+=("${line#"$prefix"}") ;;
    esac
  done < <("${COMP_WORDS[0]/#\~/${HOME-}}" completion words -- "${words[@]}" 2>/dev/null)
}
complete -F _planc planc
)shell";

constexpr char kZsh[] = R"shell(#compdef planc
# Completion of planc for zsh.
_planc() {
  local line text
  local -a plain glued suffixes
  local files='' folders=''
  local program="${(Q)words[1]/#\~/${HOME-}}"
  for line in "${(@f)$("$program" completion words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      ('') ;;
      (:files*) files=1; suffixes=(${=line#:files}) ;;
      (:folders) folders=1 ;;
      (*)
        text=${line%%$'\t'*}
        line=${text//:/\\:}:${line#*$'\t'}
        if [[ $text == *= ]]; then glued+=("$line"); else plain+=("$line"); fi ;;
    esac
  done
  (( ${#plain} )) && _describe planc plain
  (( ${#glued} )) && _describe planc glued -S ''
  [[ -n $files || -n $folders ]] && compset -P '*='
  if [[ -n $files ]]; then
    if (( ${#suffixes} )); then _files -g "*(${(j:|:)suffixes})"; else _files; fi
  elif [[ -n $folders ]]; then
    _files -/
  fi
}
if [[ ${funcstack[1]} == _planc ]]; then _planc "$@"; else compdef _planc planc; fi
)shell";

constexpr char kFish[] = R"shell(# Completion of planc for fish.
function __planc_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l last (string replace -r '^.*=' '' -- "$current")
    set -l length (math (string length -- "$current") - (string length -- "$last"))
    set -l prefix (string sub -l $length -- "$current")
    for line in ($words[1] completion words -- $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files'
                for path in (__fish_complete_path "$last")
                    echo $prefix$path
                end
            case ':files *'
                for path in (__fish_complete_path "$last")
                    for suffix in / (string split ' ' -- (string sub -s 8 -- $line))
                        if string match -q -- "*$suffix" (string split \t -- $path)[1]
                            echo $prefix$path
                        end
                    end
                end
            case ':folders'
                for path in (__fish_complete_directories "$last")
                    echo $prefix$path
                end
            case '*'
                echo $line
        end
    end
end
complete -c planc -f -a '(__planc_complete)'
)shell";

}  // namespace

std::string CompletionScript(const std::string& shell) {
  if (shell == "bash") return kBash;
  return shell == "zsh" ? kZsh : kFish;
}

}  // namespace planc
