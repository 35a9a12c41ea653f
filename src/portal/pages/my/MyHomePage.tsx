import { PageHeader } from "../../shared/page/PageHeader.tsx"

const MyHomePage = () => <PageHeader title="My key" />

export default MyHomePage
