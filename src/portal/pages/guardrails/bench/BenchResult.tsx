import { Alert, Stack } from "@mantine/core"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Facts } from "../../../shared/words/Facts.tsx"
import { durationText } from "../../../shared/words/format.ts"
import { ActionWord } from "../words/words.tsx"
import { align } from "./align.ts"
import styles from "./Bench.module.css"
import { chunksOf, contentOf } from "./chunks.ts"
import { Marked } from "./Marked.tsx"
import { StreamPieces } from "./StreamPieces.tsx"
import type { TrialResult, Tried } from "./trial.ts"

type Part = NonNullable<TrialResult["request"]>

/** What was found, what would be sent, and what the client would see. */
export const BenchResult = ({ tried: { answer, request, result } }: { readonly tried: Tried }) => (
  <Stack gap="md" aria-live="polite">
    {result.request !== null && (
      <section>
        <h3>Request</h3>
        <Stack gap="xs">
          <Results results={result.request.results} />
          <Stopped stopped={result.request.stopped} />
          {result.request.body !== null && (
            <Texts before={request} after={contentOf(result.request.body)} labels={["Found", "Sent to the upstream"]} />
          )}
        </Stack>
      </section>
    )}
    {result.response !== null && (
      <section>
        <h3>Response</h3>
        <Stack gap="xs">
          <Results results={result.response.results} />
          <Stopped stopped={result.response.stopped} />
          {result.response.body !== null && (
            <Texts
              before={answer}
              after={contentOf(result.response.body)}
              labels={["The model's answer", "What the client sees"]}
            />
          )}
        </Stack>
      </section>
    )}
    {result.stream !== null && (
      <section>
        <h3>Response, as a stream</h3>
        <Stack gap="xs">
          <Results results={result.stream.results} />
          <Stopped stopped={result.stream.stopped} />
          <Texts
            before={chunksOf(answer).join("")}
            after={result.stream.sent.join("")}
            labels={["The model's answer", "What the client sees"]}
          />
          <StreamPieces chunks={chunksOf(answer)} sent={result.stream.sent} />
        </Stack>
      </section>
    )}
    {Object.keys(result.placeholders).length > 0 && (
      <section>
        <h3>Placeholders of the request</h3>
        <Facts
          facts={Object.entries(result.placeholders).map(([name, value]) => [
            name,
            <ForeignText key={name}>{value}</ForeignText>
          ])}
        />
      </section>
    )}
  </Stack>
)

const Texts = ({
  after,
  before,
  labels
}: {
  readonly before: string
  readonly after: string
  readonly labels: readonly [before: string, after: string]
}) => {
  const segments = align(before, after)
  return (
    <>
      <Marked label={labels[0]} segments={segments} side="before" />
      <Marked label={labels[1]} segments={segments} side="after" />
    </>
  )
}

const Results = ({ results }: { readonly results: Part["results"] }) => (
  <>
    {results.map(({ action, latency_ms, metadata, mode, reason }) => (
      <p key={mode}>
        <ActionWord action={action} /> {durationText(latency_ms)}
        {reason !== null && <ForeignText> · {reason}</ForeignText>}
        {Object.keys(metadata).length > 0 && <code className={styles.metadata}> {JSON.stringify(metadata)}</code>}
      </p>
    ))}
  </>
)

const Stopped = ({ stopped }: { readonly stopped: Part["stopped"] }) =>
  stopped === null ? null : (
    <Alert color="red" title={<code>{stopped.code}</code>}>
      {stopped.message}
    </Alert>
  )
