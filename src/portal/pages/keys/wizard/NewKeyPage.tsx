import { Button, Group, Stepper } from "@mantine/core"
import { useNavigate } from "@tanstack/react-router"
import { useContext, useEffect, useRef, useState } from "react"
import { useTextSearch } from "../../../address/search.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApiWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { useUnstoredSecret } from "../../../shared/dialogs/useUnstoredSecret.ts"
import { MayOpen } from "../../../shared/links/MayOpen.ts"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { keysPath, staleAfterKeys } from "../words/key.ts"
import { bodyOf, type Draft, draftFor, stepOfField } from "./draft.ts"
import { GuardrailStep } from "./GuardrailStep.tsx"
import { LimitStep } from "./LimitStep.tsx"
import { MadeKey } from "./MadeKey.tsx"
import styles from "./NewKeyPage.module.css"
import { OwnerStep } from "./OwnerStep.tsx"
import { PresetStep } from "./PresetStep.tsx"
import { ReviewStep } from "./ReviewStep.tsx"

type Minted = ResponseOf<"POST", typeof keysPath>

const steps = ["Owner", "Preset", "Limits", "Guardrails", "Review"]

/** Makes a key, step by step, and shows its secret once. */
const NewKeyPage = () => {
  const { text } = useTextSearch()
  const navigate = useNavigate()
  const mayOpen = useContext(MayOpen)
  const mayGuard = useAllowed("policies:update")
  const [draft, setDraft] = useState<Draft>(() => draftFor(text("project_id")))
  const [step, setStep] = useState(0)
  const [made, setMade] = useState<Minted>()
  const create = useApiWrite("POST", keysPath, staleAfterKeys, { hasSecret: true })
  useUnstoredSecret(create.isPending)
  const goOn = useRef<HTMLButtonElement>(null)
  // so that Enter goes on with what is usual, step by step
  useEffect(() => {
    if (step > 0) goOn.current?.focus({ preventScroll: true })
    window.scrollTo(0, 0)
  }, [step])
  const set = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }))

  if (made !== undefined) {
    const maySeeKey = mayOpen(`/keys/${made.key.id}`)
    return (
      <MadeKey
        made={made}
        goesToKey={maySeeKey}
        onStored={() => {
          setMade(undefined)
          create.reset()
          if (maySeeKey) return void navigate({ to: "/keys/$id", params: { id: made.key.id } })
          setDraft(draftFor(text("project_id")))
          setStep(0)
        }}
      />
    )
  }
  const body = bodyOf(draft)
  const errors = create.error?.fields ?? []
  const isLast = step === steps.length - 1
  const next = () => {
    if (!isLast) return setStep(step + 1)
    create.mutate(
      { body },
      {
        onSuccess: setMade,
        // the step with the field that the server refuses is shown
        onError: ({ fields }) => setStep(stepOfField(fields[0]?.field) ?? step)
      }
    )
  }
  const panels = [
    <OwnerStep key="owner" draft={draft} onChange={set} errors={errors} />,
    <PresetStep key="preset" draft={draft} onChange={set} />,
    <LimitStep key="limits" draft={draft} onChange={set} errors={errors} />,
    <GuardrailStep key="guardrails" draft={draft} onChange={set} errors={errors} mayChange={mayGuard} />,
    <ReviewStep key="review" draft={draft} body={body} />
  ]
  return (
    <>
      <PageHeader
        title="Create a key"
        lead="A key lets one application or person use the gateway. Every step has a usual answer: go on with Enter."
        actions={<CopyAs method="POST" address={keysPath} body={body} />}
      />
      <Stepper active={step} onStepClick={setStep} size="xs" mb="md" className={styles.steps ?? ""}>
        {steps.map((label) => (
          <Stepper.Step key={label} label={label} />
        ))}
      </Stepper>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          next()
        }}
      >
        <Panel title={steps[step]}>{panels[step]}</Panel>
        {create.error !== null && <ErrorNote error={create.error} />}
        <Group justify="end" mt="sm">
          {step > 0 && (
            <Button variant="default" onClick={() => setStep(step - 1)}>
              Back
            </Button>
          )}
          {!isLast && (
            <Button variant="default" onClick={() => setStep(steps.length - 1)}>
              To the review
            </Button>
          )}
          <Button ref={goOn} type="submit" loading={create.isPending}>
            {isLast ? "Create the key" : "Next"}
          </Button>
        </Group>
      </form>
    </>
  )
}

export default NewKeyPage
