import { SimpleGrid, Stack, TextInput } from "@mantine/core"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useUtc } from "../../address/useUtc.ts"
import { useTasksApi, useTasksWrite } from "../../api/queries.ts"
import type { ReplayJob, ReplayPage, ReplaySelection } from "../../api/TaskTypes.ts"
import { useTell } from "../change/useTell.tsx"
import { ChangeDialog } from "../dialogs/ChangeDialog.tsx"
import { randomKey } from "./randomKey.ts"
import { type PlanTexts, planBody } from "./replayPlan.ts"

const replaysPath = "/dlq/replays"

interface Props {
  readonly selection: ReplaySelection
  /** What is replayed, in words. */
  readonly children: ReactNode
  readonly force?: boolean
  readonly onClose: () => void
}

/** Plans a replay in steps. The page of the replay shows how it goes, and can stop it. */
export const ReplayPlanDialog = ({ children, force = false, onClose, selection }: Props) => {
  const defaults = useTasksApi<ReplayPage>(replaysPath, { limit: 1 }).data?.plan_defaults
  const [typed, setTyped] = useState<Partial<PlanTexts>>({})
  const [idempotencyKey] = useState(randomKey)
  const start = useTasksWrite<ReplayJob>()
  const navigate = useNavigate()
  const tell = useTell()
  const utc = useUtc()
  const plan: PlanTexts = {
    steps: typed.steps ?? [...(defaults?.steps ?? []), "all"].join(" · "),
    rate: typed.rate ?? String(defaults?.rate ?? ""),
    stop: typed.stop ?? (defaults === undefined ? "" : String(defaults.stop_after ?? "never")),
    wait: typed.wait ?? String(defaults?.wait_seconds ?? ""),
    begin: typed.begin ?? ""
  }
  const problemOf = (name: string) => start.error?.fields.find(({ field }) => field === `plan.${name}`)?.message
  const isAtFields = start.error?.fields.some(({ field }) => field.startsWith("plan.")) === true
  const field = (name: keyof PlanTexts, api: string, label: string, description: string) => (
    <TextInput
      label={label}
      description={description}
      value={plan[name]}
      error={problemOf(api)}
      onChange={({ currentTarget }) => setTyped({ ...typed, [name]: currentTarget.value })}
      {...(name === "steps" && { "data-autofocus": true })}
    />
  )
  return (
    <ChangeDialog
      title="Replay in steps"
      action={force ? "Replay, although some may run twice" : "Start the replay"}
      isBusy={start.isPending}
      error={isAtFields ? null : start.error}
      onClose={onClose}
      onConfirm={() =>
        start.mutate(
          {
            path: replaysPath,
            body: { ...selection, ...(force && { force }), plan: planBody(plan, utc) },
            headers: { "idempotency-key": idempotencyKey }
          },
          {
            onSuccess: ({ replay_id }) => {
              onClose()
              tell({ done: "The replay is planned.", audit: { type: "tasks", id: replaysPath } })
              void navigate({ to: "/dead-letters/replays/$replayId", params: { replayId: replay_id } })
            }
          }
        )
      }
    >
      <Stack gap="xs">
        {children}
        {field(
          "steps",
          "steps",
          "Steps",
          "How many records each step replays. A step waits for the outcome of the one before. If all of that one failed, the replay pauses."
        )}
        <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="xs">
          {field("rate", "rate", "Rate", "Records a second; empty: no limit.")}
          {field("stop", "stop_after", "Stop after", "Failures of one kind; or: never.")}
          {field("wait", "wait_seconds", "Wait", "Seconds for a step's outcomes.")}
        </SimpleGrid>
        <TextInput
          type="datetime-local"
          label={utc ? "Begin at (UTC)" : "Begin at"}
          description="Empty: at once. The letters are those that match now."
          value={plan.begin}
          error={problemOf("begin_at")}
          onChange={({ currentTarget }) => setTyped({ ...typed, begin: currentTarget.value })}
        />
      </Stack>
    </ChangeDialog>
  )
}
