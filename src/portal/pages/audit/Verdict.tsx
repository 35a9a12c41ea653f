import { Button, Group, Stack, TextInput } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { type FormEvent, useState } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { CodeBlock } from "../../shared/words/CodeBlock.tsx"
import { countText } from "../../shared/words/format.ts"
import { type Meaning, StatusWord } from "../../shared/words/StatusWord.tsx"
import { anchorOf, anchorText, type Comparison, compare, errorOf, type Verification } from "./verification.ts"

const faults: Readonly<Record<NonNullable<Verification["fault"]>["fault"], string>> = {
  missing: "the event of this number is missing",
  repeated: "two events have this number",
  not_linked: "the event does not carry the hash of the event before",
  changed: "the event does not match its own hash: somebody changed it",
  not_the_head: "the last event is not the head of the chain",
  behind_the_head: "there are events after the head of the chain",
  no_head: "the head of the chain is missing",
  not_archived: "no event records the archive after which the log begins"
}

/** What the verification found, the head to note elsewhere, and the comparison with one that was noted. */
export const Verdict = ({ result }: { readonly result: Verification }) => {
  const { archived, fault, head, intact, verified_through } = result
  return (
    <Stack gap="sm">
      <output>
        {intact ? (
          <>
            <StatusWord meaning="good">intact</StatusWord> All events until number {countText(verified_through)} are as
            they were written
            {archived === null ? "." : `; those until ${countText(archived.sequence)} are in an archive.`}
          </>
        ) : (
          <>
            <StatusWord meaning="bad">broken</StatusWord>{" "}
            {fault !== null && (
              <>
                At number {countText(fault.sequence)}, {faults[fault.fault]}.{" "}
                {fault.event_id !== null && (
                  <Link to="/audit" search={{ open: String(fault.sequence), span: "all" }}>
                    Look at the event
                  </Link>
                )}
              </>
            )}
          </>
        )}
      </output>
      {head !== null && (
        <section>
          <h3>The head of the chain</h3>
          <p>Keep it somewhere else. Only a noted head shows whether somebody has written the whole log anew.</p>
          <CodeBlock text={anchorText(head)} label="Head" />
        </section>
      )}
      <Compare result={result} />
    </Stack>
  )
}

const verdicts: Readonly<Record<Comparison, readonly [meaning: Meaning, word: string, sentence: string]>> = {
  same: ["good", "same", "The log still has this event with this hash, and the chain leads from it to the head."],
  different: ["bad", "different", "The event of this number has another hash: the log was written anew."],
  absent: ["bad", "absent", "The log has no such event: its end was cut off."],
  archived: ["idle", "archived", "The event is in an archive. Verify that with the command audit verify-archive."]
}

const Compare = ({ result }: { readonly result: Verification }) => {
  const [typed, setTyped] = useState("")
  const [found, setFound] = useState<Comparison>()
  const [error, setError] = useState<ApiError | null>(null)
  const anchor = anchorOf(typed)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setError(null)
    if (anchor !== undefined) void compare(anchor, result).then(setFound, (cause: unknown) => setError(errorOf(cause)))
  }
  return (
    <form onSubmit={submit}>
      <Group align="end" gap="xs">
        <TextInput
          label="Compare with a noted head"
          placeholder="1024:9f86d0…"
          value={typed}
          onChange={({ currentTarget }) => {
            setTyped(currentTarget.value)
            setFound(undefined)
          }}
          error={typed !== "" && anchor === undefined && "a number, a colon and 64 hexadecimal digits"}
          flex={1}
          miw={220}
        />
        <Button type="submit" variant="default" disabled={anchor === undefined}>
          Compare
        </Button>
      </Group>
      {error !== null && <ErrorNote error={error} />}
      {found !== undefined && (
        <output>
          <StatusWord meaning={verdicts[found][0]}>{verdicts[found][1]}</StatusWord> {verdicts[found][2]}
        </output>
      )}
    </form>
  )
}
