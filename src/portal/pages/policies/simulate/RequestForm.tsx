import { Button, Group, Modal, Stack, Textarea, TextInput } from "@mantine/core"
import { useState } from "react"
import { LazySelect } from "../../../shared/fields/LazySelect.tsx"
import { KeyPicker } from "../../../shared/keys/KeyPicker.tsx"
import { readCurl } from "./curl.ts"
import { MoreFields } from "./MoreFields.tsx"
import { methodOf, methods, type RequestDraft } from "./request.ts"

interface Props {
  readonly request: RequestDraft
  readonly onChange: (request: RequestDraft) => void
  readonly problem: string | undefined
}

/** A request, written down or pasted as a command of curl. */
export const RequestForm = ({ onChange, problem, request }: Props) => {
  const [isPasting, setPasting] = useState(false)
  const [hasMore, setMore] = useState(false)
  const set = (change: Partial<RequestDraft>) => onChange({ ...request, ...change })
  return (
    <Stack gap="sm">
      <KeyPicker label="With the key" value={request.key_id} onChange={(key_id) => set({ key_id })} />
      <Group gap="xs" align="end" wrap="nowrap">
        <LazySelect
          label="Method"
          data={[...methods]}
          value={request.method}
          onChange={(method) => method !== null && set({ method: methodOf(method) })}
          allowDeselect={false}
          w={100}
        />
        <TextInput
          label="Path"
          value={request.path}
          onChange={({ currentTarget }) => set({ path: currentTarget.value })}
          flex={1}
        />
      </Group>
      <Textarea
        label="Body"
        value={request.body}
        onChange={({ currentTarget }) => set({ body: currentTarget.value })}
        error={problem}
        autosize
        minRows={5}
        maxRows={16}
        styles={{ input: { fontFamily: "var(--mono)" } }}
      />
      <Group>
        <Button variant="default" onClick={() => setPasting(true)}>
          Paste a curl command
        </Button>
      </Group>
      <details onToggle={({ currentTarget }) => setMore(currentTarget.open)}>
        <summary>More</summary>
        {hasMore && <MoreFields more={request.more} onChange={(more) => set({ more })} />}
      </details>
      {isPasting && (
        <PasteCurl
          onClose={() => setPasting(false)}
          onRead={(read) => {
            set(read)
            setPasting(false)
          }}
        />
      )}
    </Stack>
  )
}

interface PasteProps {
  readonly onRead: (request: Pick<RequestDraft, "method" | "path" | "body">) => void
  readonly onClose: () => void
}

const PasteCurl = ({ onClose, onRead }: PasteProps) => {
  const [command, setCommand] = useState("")
  const [problem, setProblem] = useState<string>()
  const read = () => {
    const request = readCurl(command)
    if (typeof request === "string") return setProblem(request)
    onRead({ method: methodOf(request.method), path: request.path, body: request.body ?? "" })
  }
  return (
    <Modal opened onClose={onClose} title="Paste a curl command" size="lg">
      <Stack gap="sm">
        <Textarea
          label="Command"
          description="Its method, its path and its body are taken. Keys in it stay in this page."
          value={command}
          onChange={({ currentTarget }) => setCommand(currentTarget.value)}
          error={problem}
          autosize
          minRows={6}
          maxRows={16}
          data-autofocus
          styles={{ input: { fontFamily: "var(--mono)" } }}
        />
        <Group justify="end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button onClick={read}>Take it over</Button>
        </Group>
      </Stack>
    </Modal>
  )
}
