// Searching texts: all questions, answers and passages are unpacked once, when a text is first looked for.
let reading = null;

async function readTexts() {
  await Promise.all([openAll("questions"), openAll("evidence")]);
  const passages = Array.from({ length: index.kinds.evidence.kept }, (_, number) => lowered(item("evidence", number)));
  const questions = index.ids.map((id, question) => lowered([id, index.tags[question].map((tag) => index.words.tag[tag]),
    searched(item("questions", index.items[question]))]));
  return { passages, questions };
}

// Answers as they are read: a citation is part of the text around it.
function searched({ text, gold, options, subs, references, passages, answers }) {
  const said = (answers ?? []).map((answer) => answer && [(answer.text ?? []).join(""), answer.said, answer.failure, answer.asked]);
  return [text, gold, options, subs, references, said, (passages ?? []).map((passage) => passage.source)];
}

// All strings in the values, however nested.
const lowered = (values) => values.flat(6).filter((value) => typeof value === "string").join("\n").toLowerCase();

// The questions that hold the text: a promise of one truth for each, or null where nothing is looked for.
async function searchFor(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  reading ??= readTexts();
  const { passages, questions } = await reading;
  const hits = passages.map((passage) => passage.includes(wanted));
  return questions.map((question, number) => question.includes(wanted) || passagesOf(number).some((passage) => hits[passage.text]));
}
