import { Button, Group, Stack, Switch, Textarea } from "@mantine/core"
import { type FormEvent, useState } from "react"
import { call } from "../../../api/control.ts"
import { objectOf } from "../../../shared/change/changed.ts"
import { errorAt, useSubmit } from "../../../shared/change/useSubmit.ts"
import { JsonEditor } from "../../../shared/editor/JsonEditor.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Segments } from "../../../shared/page/Segments.tsx"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { prettyOf } from "../../../shared/words/format.ts"
import type { Guardrail } from "../words/words.tsx"
import styles from "./Bench.module.css"
import { BenchResult } from "./BenchResult.tsx"
import { chunksOf } from "./chunks.ts"
import type { Trial, Tried } from "./trial.ts"

const sampleRequest = "Write to jane@example.com, or call +49 30/12345678."
const sampleAnswer = "I wrote to [EMAIL_1]. Bob's address is bob@example.com."

/** Tries the guardrail on a request and its answer. No upstream is called, and nothing is recorded. */
export const Bench = ({ guardrail }: { readonly guardrail: Guardrail }) => {
  const checksRequests = guardrail.modes.includes("pre_call")
  const checksPlain = guardrail.modes.includes("post_call")
  const checksStreams = checksPlain || guardrail.modes.includes("during_call")
  const [request, setRequest] = useState(sampleRequest)
  const [answer, setAnswer] = useState(sampleAnswer)
  const [way, setWay] = useState(checksStreams ? "stream" : "plain")
  const [hasOwnConfig, setOwnConfig] = useState(false)
  const [config, setConfig] = useState(() => prettyOf(guardrail.runtime_config))
  const { error, isBusy, result, submit } = useSubmit<Tried>()

  const own = objectOf(config)
  const trial: Trial = {
    ...(checksRequests && request !== "" && { request: { messages: [{ role: "user", content: request }] } }),
    ...(answer !== "" && checksPlain && way === "plain" && { response: responseOf(answer) }),
    ...(answer !== "" && checksStreams && way === "stream" && { chunks: chunksOf(answer) }),
    ...(hasOwnConfig && own !== undefined && { runtime_config: own })
  }
  const run = (event: FormEvent) => {
    event.preventDefault()
    void submit(async () => ({
      request,
      answer,
      result: await call("POST", "/admin-ui/admin/guardrails/:name/test", {
        params: { name: guardrail.name },
        body: trial
      })
    }))
  }
  return (
    <div className={styles.bench}>
      <Panel
        title="What goes in"
        actions={
          <CopyAs
            method="POST"
            address={`/admin-ui/admin/guardrails/${encodeURIComponent(guardrail.name)}/test`}
            body={trial}
          />
        }
      >
        <form onSubmit={run}>
          <Stack gap="sm">
            {checksRequests && (
              <Textarea
                label="The user's message"
                value={request}
                onChange={({ currentTarget }) => setRequest(currentTarget.value)}
                autosize
                minRows={3}
                maxRows={10}
                error={errorAt(error, "request")}
              />
            )}
            {checksStreams && (
              <>
                <Textarea
                  label="The model's answer"
                  description={
                    way === "stream"
                      ? "It arrives in pieces: one for each word, or cut with a | where you like."
                      : "It arrives as a whole."
                  }
                  value={answer}
                  onChange={({ currentTarget }) => setAnswer(currentTarget.value)}
                  autosize
                  minRows={3}
                  maxRows={10}
                  error={errorAt(error, "response") ?? errorAt(error, "chunks")}
                />
                {checksPlain && (
                  <Segments
                    aria-label="How the answer arrives"
                    data={[
                      { value: "stream", label: "Event stream" },
                      { value: "plain", label: "Plain response" }
                    ]}
                    value={way}
                    onChange={setWay}
                  />
                )}
              </>
            )}
            <Switch
              label="Try another runtime_config, without storing it"
              checked={hasOwnConfig}
              onChange={({ currentTarget }) => setOwnConfig(currentTarget.checked)}
            />
            {hasOwnConfig && (
              <JsonEditor
                label="runtime_config"
                value={config}
                onChange={setConfig}
                error={errorAt(error, "runtime_config")}
                height={150}
              />
            )}
            {error !== null && <ErrorNote error={error} />}
            <Group>
              <Button type="submit" loading={isBusy} disabled={hasOwnConfig && own === undefined}>
                Try it
              </Button>
            </Group>
          </Stack>
        </form>
      </Panel>
      <Panel title="What comes out">
        {result === undefined ? (
          <p>
            Press “Try it”. What the guardrail finds is marked here, with what would be sent and what the client would
            see.
          </p>
        ) : (
          <BenchResult tried={result} />
        )}
      </Panel>
    </div>
  )
}

const responseOf = (content: string) => ({ choices: [{ index: 0, message: { role: "assistant", content } }] })
