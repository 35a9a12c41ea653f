import type { LetterState } from "../../api/TaskTypes.ts"
import { StatusWord } from "../words/StatusWord.tsx"
import { letterWords } from "./meanings.ts"

interface Props {
  readonly letter: {
    readonly state: LetterState
    readonly replay_outcome?: { readonly outcome: "published" | "handled" | "failed_again" } | undefined
  }
}

/** The state of a dead letter, or what became of its replay. */
export const LetterWord = ({ letter }: Props) => {
  const [meaning, words] = letterWords(letter)
  return <StatusWord meaning={meaning}>{words}</StatusWord>
}
