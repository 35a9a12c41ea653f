import { Button, Textarea } from "@mantine/core"
import { useState } from "react"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApiWrite } from "../../../api/queries.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Segments } from "../../../shared/page/Segments.tsx"
import { durationText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./Bench.module.css"
import { actionWords, type Direction, foundText, testOf, textAfter } from "./guardrailTest.ts"

const example = "Call me on +1 202 555 0143, or write to ada@example.org."
const mostCharacters = 12_000

const directions: ReadonlyArray<{ readonly value: Direction; readonly label: string }> = [
  { value: "sent", label: "I send it" },
  { value: "answered", label: "It comes back" },
  { value: "streamed", label: "It is streamed" }
]

const isDirection = (value: string): value is Direction => directions.some((one) => one.value === value)

/** Tries on a text what would happen to it. Nothing is sent to a model. */
export const Bench = () => {
  const [text, setText] = useState(example)
  const [direction, setDirection] = useState<Direction>("sent")
  const test = useApiWrite("POST", "/admin-ui/v1/guardrails/test", [])
  const isBlocked = test.error?.code === "guardrail_blocked"
  return (
    <Panel title="Try it" note="Nothing is sent to a model, and it costs nothing.">
      <form
        className={styles.bench}
        onSubmit={(event) => {
          event.preventDefault()
          test.mutate({ body: testOf(direction, text) })
        }}
      >
        <Textarea
          label="Text"
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
          maxLength={mostCharacters}
          autosize
          minRows={3}
          maxRows={12}
        />
        <div className={styles.controls}>
          <Segments
            aria-label="What happens to the text"
            data={[...directions]}
            value={direction}
            onChange={(value) => {
              if (isDirection(value)) setDirection(value)
              test.reset()
            }}
          />
          <Button type="submit" loading={test.isPending} disabled={text.trim() === ""}>
            Try it
          </Button>
        </div>
      </form>
      <div aria-live="polite">
        {test.error !== null && !isBlocked && <ErrorNote error={test.error} />}
        {test.error !== null && isBlocked && (
          <p className={styles.outcome}>
            <StatusWord meaning="bad">It would be blocked</StatusWord> <ForeignText>{test.error.message}</ForeignText>
          </p>
        )}
        {test.data !== undefined && <Outcome tested={test.data} text={text} />}
      </div>
    </Panel>
  )
}

interface OutcomeProps {
  readonly tested: ResponseOf<"POST", "/admin-ui/v1/guardrails/test">
  readonly text: string
}

const Outcome = ({ tested, text }: OutcomeProps) => {
  const after = textAfter(tested)
  const { applied_guardrails, results, stopped } = tested
  return (
    <div className={styles.after}>
      <p className={styles.outcome}>
        {stopped !== undefined ? (
          <StatusWord meaning="bad">The stream would end</StatusWord>
        ) : applied_guardrails.length === 0 ? (
          <StatusWord meaning="idle">Nothing looks at it</StatusWord>
        ) : after === text ? (
          <StatusWord meaning="good">It passes as it is</StatusWord>
        ) : (
          <StatusWord meaning="warning">It would be changed</StatusWord>
        )}{" "}
        {stopped?.message}
      </p>
      {after !== text && after !== "" && (
        <figure className={styles.text} aria-label="The text after the guardrails">
          <ForeignText>{after}</ForeignText>
        </figure>
      )}
      <ul className={styles.results}>
        {results.map(({ action, guardrail_name, latency_ms, metadata, reason }) => (
          <li key={`${guardrail_name} ${action} ${reason}`}>
            <ForeignText>{guardrail_name}</ForeignText> {actionWords[action] ?? action}
            {foundText(metadata) !== "" && <>: {foundText(metadata)}</>}
            {reason !== null && (
              <>
                {" "}
                (<ForeignText>{reason}</ForeignText>)
              </>
            )}
            , in {durationText(latency_ms)}
          </li>
        ))}
      </ul>
    </div>
  )
}
