import { useLocalStorage } from "@mantine/hooks"
import { whenPersonLeaves } from "../../api/session.ts"

const key = "svc-muted-tasks"
/** More are forgotten, the oldest first. */
const most = 200

whenPersonLeaves(() => localStorage.removeItem(key))

/** Tasks that this browser leaves out of lists, such as one that somebody is at work on already. */
export const useMuted = () => {
  const [muted, setMuted] = useLocalStorage<ReadonlyArray<string>>({
    key,
    defaultValue: [],
    getInitialValueInEffect: false
  })
  return {
    isMuted: (taskId: string) => muted.includes(taskId),
    setMuted: (taskId: string, isMuted: boolean) =>
      setMuted((before) => {
        const others = before.filter((id) => id !== taskId)
        return isMuted ? [...others, taskId].slice(-most) : others
      })
  }
}
