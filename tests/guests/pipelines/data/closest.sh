#!/bin/sh
# Answers with the title of the page that shares the most words with the question. One line of JSON in, one out.
read -r ASKED
export ASKED
awk '
BEGIN { many = split(tolower(ENVIRON["ASKED"]), words, /[^a-z0-9]+/) }
{
    page = tolower($0); shared = 0
    for (at = 1; at <= many; at++) if (length(words[at]) > 3 && index(page, words[at])) shared++
    if (shared > most) { most = shared; best = $0 }
}
END {
    match(best, /"title": *"([^"\\]|\\.)*"/)
    title = substr(best, RSTART, RLENGTH); sub(/"title": */, "", title)
    printf "{\"answer\": %s, \"contexts\": [%s], \"citations\": [1]}\n", title, best
}' "$PAGES"
