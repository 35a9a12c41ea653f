import { PageHeader } from "../../shared/page/PageHeader.tsx"

const TasksPage = () => <PageHeader title="Tasks" />

export default TasksPage
