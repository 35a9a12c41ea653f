import { Button, Group, Menu, Modal, TextInput } from "@mantine/core"
import { useLocalStorage } from "@mantine/hooks"
import { IconBookmark, IconTrash } from "@tabler/icons-react"
import { useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { useFollowedSearch } from "../../../address/FollowedAddress.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"

interface View {
  readonly name: string
  readonly search: Readonly<Record<string, unknown>>
}

const given: ReadonlyArray<View> = [
  { name: "Cost by project", search: { group: "project", measure: "cost" } },
  { name: "Tokens by model", search: { group: "model", measure: "tokens" } },
  { name: "Failures by key", search: { group: "key", measure: "failures" } },
  { name: "Services over time", search: { group: "service", measure: "requests" } },
  { name: "Cost by task", search: { group: "task", measure: "cost" } },
  { name: "This week and the last", search: { range: "7d", compare: "previous", measure: "cost" } }
]

/** Views that people come back to. Their own are kept in this browser. */
export const SavedViews = () => {
  const search = useFollowedSearch()
  const navigate = useNavigate()
  const [views, setViews] = useLocalStorage<ReadonlyArray<View>>({ key: "svc-usage-views", defaultValue: [] })
  const [isNaming, setNaming] = useState(false)
  const open = (view: View) => void navigate({ to: "/usage", search: view.search })
  return (
    <>
      <Menu position="bottom-end" width={260}>
        <Menu.Target>
          <Button variant="default" leftSection={<IconBookmark size={14} />}>
            Views
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {views.length > 0 && <Menu.Label>Yours, in this browser</Menu.Label>}
          {views.map((view) => (
            <Menu.Item key={view.name} onClick={() => open(view)}>
              <ForeignText>{view.name}</ForeignText>
            </Menu.Item>
          ))}
          {views.map(({ name }) => (
            <Menu.Item
              key={`remove ${name}`}
              leftSection={<IconTrash size={13} />}
              closeMenuOnClick={false}
              onClick={() => setViews((before) => before.filter((view) => view.name !== name))}
            >
              Remove <ForeignText>{name}</ForeignText>
            </Menu.Item>
          ))}
          <Menu.Item onClick={() => setNaming(true)}>Save this view …</Menu.Item>
          <Menu.Divider />
          <Menu.Label>Given</Menu.Label>
          {given.map((view) => (
            <Menu.Item key={view.name} onClick={() => open(view)}>
              {view.name}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {isNaming && (
        <NameView
          onClose={() => setNaming(false)}
          onSave={(name) => {
            const { open: _, ...kept } = search
            setViews((before) => [...before.filter((view) => view.name !== name), { name, search: kept }])
            setNaming(false)
          }}
        />
      )}
    </>
  )
}

interface NameProps {
  readonly onClose: () => void
  readonly onSave: (name: string) => void
}

const NameView = ({ onClose, onSave }: NameProps) => {
  const [name, setName] = useState("")
  return (
    <Modal opened onClose={onClose} title="Save this view">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onSave(name.trim())
        }}
      >
        <TextInput
          label="Name"
          description="The range, the filters, the group and the measure are kept in this browser."
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          maxLength={80}
          data-autofocus
        />
        <Group justify="end" mt="sm">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" disabled={name.trim() === ""}>
            Save
          </Button>
        </Group>
      </form>
    </Modal>
  )
}
