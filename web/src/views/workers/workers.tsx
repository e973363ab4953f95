export default function Workers() { return <h1>Workers</h1>; }
